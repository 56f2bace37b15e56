#pragma once
// The table of rotary embeddings: computed on the CPU in double precision, so that every device turns by the same
// angles. Libraries may give another last bit of a double (glibc does with and without FMA), of which rounding to float
// leaves nothing but in one case of some hundred millions; cpu_bits_test holds tables to constants on all processors.

#include <cstdint>
#include <vector>

#include "engine/format/model_config.h"

namespace canopy {

/// The elements of a query or key head in the order that a device has them in; empty: as they are. Where a part of a
/// head is turned and its pairs are halves of that part, the two elements of each pair go half a head apart, as pairs
/// of whole heads are; what queries and keys give together does not depend on the order.
std::vector<uint32_t> head_order(const ModelConfig& config);

/// Where the rotations of queries begin in rotation_table(), in positions: 0, or behind those of keys, where queries
/// grow with their position and the context is long enough for that.
uint32_t query_offset(const ModelConfig& config, uint32_t context);

/// cos and sin of position * frequency, times the scaling's magnitude, [context, head_dim / 2, 2]; 1 and 0 of pairs
/// that are not turned. With a query_offset() twice, the second times what queries of the position are multiplied by.
std::vector<float> rotation_table(const ModelConfig& config, uint32_t context);
/// The same by ModelConfig::local_rope_theta, without scaling, of heads of the layers that turn so.
std::vector<float> local_rotation_table(const ModelConfig& config, uint32_t context);
/// Their rows of one position, of a context of so many.
std::vector<float> rotation_at(const ModelConfig& config, uint32_t context, uint32_t position);
std::vector<float> local_rotation_at(const ModelConfig& config, uint32_t position);
/// The same for an angle of 0: 1 and 0 in turn.
std::vector<float> no_rotation_table(const ModelConfig& config, uint32_t context);

}  // namespace canopy
