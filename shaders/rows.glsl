// One row of a pass; mirrors canopy::Row (engine/compute/rows.h).
struct Row {
  uint token;
  uint position;
  uint slot;
  uint prefix;
  uint first_ancestor;
  uint ancestor_count;
  uint unused0;
  uint unused1;
};
