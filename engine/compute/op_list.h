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

/// Collects ops in the order in which they will run; each sees the results of the ones before it. Nothing is run or
/// checked here.
class Recorder {
 public:
  void operator()(Op op) { ops_.push_back(std::move(op)); }
  /// Returns the ops recorded so far and empties the recorder.
  OpList finish() { return std::exchange(ops_, {}); }

 private:
  OpList ops_;
};

/// "linear_add"
const char* name_of(const Op& op);
OpPrice price_of(const Op& op);
/// Sum of the prices of the ops. An operand that several ops read counts once for each of them.
OpPrice price_of(std::span<const Op> ops);
/// "linear         4 x Q4_1 [576, 1536]; 580608 bytes, 7077888 FLOPs"
std::string to_string(const Op& op);
/// One line for each op, then a line with the number of ops and the sum of their prices.
std::string to_string(std::span<const Op> ops);

/// How many of the ops are of one kind: count_of<LinearArgs>(ops).
template <class Args>
size_t count_of(std::span<const Op> ops) {
  size_t count = 0;
  for (const Op& op : ops) count += std::holds_alternative<Args>(op) ? 1 : 0;
  return count;
}

/// The ops that project_heads is equivalent to: one linear for each weight, then rope_store. Throws bad_input as
/// check_heads does.
OpList separate_ops(const ProjectHeadsArgs& args);

}  // namespace canopy
