#pragma once
// A recording: ops in the order they run in, as data. Devices compile it (Device::compile); tests and tools list,
// count, price and print it.

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/compute/ops.h"

namespace canopy {

using OpList = std::vector<Op>;

/// Takes down ops in order; each will see the results of the ones before it. Nothing runs and nothing is checked here.
class Recorder {
 public:
  void operator()(Op op) { ops_.push_back(std::move(op)); }
  /// What was recorded. The recorder is empty again.
  OpList finish() { return std::exchange(ops_, {}); }

 private:
  OpList ops_;
};

/// "linear_add"
const char* name_of(const Op& op);
OpPrice price_of(const Op& op);
/// The sum over the ops. Operands of several ops count for each.
OpPrice price_of(std::span<const Op> ops);
/// "linear         4 x Q4_1 [576, 1536]; 580608 bytes, 7077888 FLOPs"
std::string to_string(const Op& op);
/// A line for each op, then one with their number and the sum.
std::string to_string(std::span<const Op> ops);

/// How many of the ops are of one kind: count_of<LinearArgs>(ops).
template <class Args>
size_t count_of(std::span<const Op> ops) {
  size_t count = 0;
  for (const Op& op : ops) count += std::holds_alternative<Args>(op) ? 1 : 0;
  return count;
}

/// What project_heads is defined as: linear of each weight, then rope_store. Throws bad_input as check_heads.
OpList separate_ops(const ProjectHeadsArgs& args);

}  // namespace canopy
