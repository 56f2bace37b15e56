#pragma once
// The table of rotary embeddings: computed on the CPU in double precision, so that every device turns by the same
// angles.

#include <cstdint>
#include <vector>

#include "engine/format/model_config.h"

namespace canopy {

/// cos and sin of position * frequency, times the scaling's magnitude, [context, head_dim / 2, 2].
std::vector<float> rotation_table(const ModelConfig& config, uint32_t context);
/// The same for an angle of 0: 1 and 0 in turn.
std::vector<float> no_rotation_table(const ModelConfig& config, uint32_t context);

}  // namespace canopy
