// Rows of a pass, and steps over them; mirrors engine/compute/rows.h.

struct Row {
  uint token;
  uint position;
  uint slot;
  uint prefix;
  uint first_ancestor;
  uint ancestor_count;
  uint in_place;
  uint unused;
};

const uint NO_SLOT = 0xFFFFFFFFu;

// A step of a recurrence (canopy::DeltaStep) is a uvec4: row, parent, from, to.
#define NONE 0xFFFFFFFFu
#define SPARE 0x80000000u  // in `from` and `to`: a state that is put aside for a moment
