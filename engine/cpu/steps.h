#pragma once
// Ops as steps of a team.

#include <vector>

#include "engine/compute/op_list.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/team.h"

namespace canopy::cpu {

/// What a list of ops is compiled to.
struct Plan {
  std::vector<Step> steps;
  uint64_t scratch_floats = 0;  // of each thread
  uint64_t common_floats = 0;   // of all together
};

/// Appends the steps of an op. Throws bad_input where its arguments do not fit each other.
void add_steps(const Op& op, const Kernels& kernels, uint32_t threads, Plan& plan);

/// Bytes that attention hands from one step to the next at most (Device::attention_bytes).
uint64_t attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width, uint32_t max_positions);

}  // namespace canopy::cpu
