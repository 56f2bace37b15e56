// Steps of recurrences (DeltaStep of engine/compute/ops.h): row, parent, from, to.

const uint NONE = 0xFFFFFFFFu;
const uint SPARE = 0x80000000u;  // in `from` and `to`: a state that is put aside for a moment
