#pragma once
// The oracle of each op, one file each. They run at once, on the objects of a reference device, and throw bad_input
// when an argument is missing or does not fit the others.

#include "engine/compute/ops.h"

namespace canopy::reference {

void embed(const EmbedArgs& args);
void linear(const LinearArgs& args);
void linear_add(const LinearAddArgs& args);
void linear_swiglu(const LinearSwigluArgs& args);
void rope_store(const RopeStoreArgs& args);
void attention(const AttentionArgs& args);
void select(const SelectArgs& args);
void argmax(const ArgmaxArgs& args);
void top_k(const TopKArgs& args);
void pick(const PickArgs& args);
void copy_rows(const CopyRowsArgs& args);
void norm_rows(const NormRowsArgs& args);
void kv_move(const KvMoveArgs& args);

}  // namespace canopy::reference
