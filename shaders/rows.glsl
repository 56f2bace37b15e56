// One row of a pass; mirrors canopy::Row (engine/compute/rows.h).
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
