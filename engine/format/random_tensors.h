#pragma once
// Tensors of random weights in the types of files, without a file: for measurements of models that are not there.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/repeated_bytes.h"
#include "engine/format/architecture.h"
#include "engine/format/tensor_view.h"

namespace canopy {

/// Fills `blocks` with random blocks of `type` whose decoded values lie around 0, about 0.02 on average, with scales
/// that halves hold without becoming subnormal. The same seed gives the same bytes. Throws bad_input for a type
/// without a rule (it has: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q4_K, Q6_K) and where `blocks` are no whole blocks.
void fill_random_blocks(TensorType type, uint64_t seed, std::span<std::byte> blocks);

/// The type of a matrix by its canonical name and columns.
using TypeOfTensor = std::function<TensorType(std::string_view name, uint64_t cols)>;

/// Owns the bytes of its tensors: of each type a pattern of at most kPattern bytes (and a little more), which the
/// tensors of that type begin at different places of and go through again and again.
class RandomTensors {
 public:
  static constexpr uint64_t kPattern = uint64_t{32} << 20;

  /// Matrices have the type that `type_of` gives; vectors, which are norms, are ones in F32. Throws what
  /// fill_random_blocks and RepeatedBytes throw, and bad_input where a row is no whole number of blocks.
  RandomTensors(std::span<const RequiredTensor> wanted, const TypeOfTensor& type_of);

  std::span<const TensorView> tensors() const { return tensors_; }

 private:
  std::map<TensorType, RepeatedBytes> bytes_;
  std::vector<float> ones_, minus_ones_;  // norms and biases, rates of recurrences
  std::vector<TensorView> tensors_;
};

}  // namespace canopy
