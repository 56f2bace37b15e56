#pragma once
// Runs one op case on one device. A case allocates its arguments here, records ops, and returns what they wrote as
// Results. Run on the reference device and on the device under test, it gives two Results to compare.
//
// Every buffer is followed by a guard, and every output is filled with `poison`, a NaN with a special payload, at the
// start. The reference writes exactly what an op documents, so a word that is still poison in its results must be
// poison in the other results too: that finds writes outside the documented shape. Inputs are followed by poison as
// well, so that reading past them gives NaN.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/compute/device.h"

namespace canopy::test {

class Random;

inline constexpr uint32_t poison = 0x7fc5a5a5;

/// How much a result may differ from that of the reference device.
struct Tolerance {
  double nmse = 0;       // sum of squared differences / sum of squares of the expected values
  double max_error = 0;  // largest difference / largest magnitude of the expected values
};
/// The same bits, except for the sign of zero.
inline constexpr Tolerance exact{0, 0};
/// For f32 arithmetic compared with double.
inline constexpr Tolerance f32_rounding{1e-11, 1e-5};
/// For products whose operands are rounded to halves (family matrix of the Vulkan backend).
inline constexpr Tolerance half_operands{1e-5, 5e-3};
/// For products whose sums of 32 columns are halves, too.
inline constexpr Tolerance half_sums{2.5e-5, 8e-3};
/// For products whose activations are rounded to 8 bits in the same way by the reference device: a value near a
/// rounding boundary, to which the norm's factor may bring it, is a step off. Without rounding NMSE would be above
/// 1e-5.
inline constexpr Tolerance byte_operands{1e-6, 2e-3};
/// For products whose activations are rounded to 16 bits, by blocks of 32, which the reference device does not do.
inline constexpr Tolerance short_operands{1e-8, 3e-4};
/// The same after exp, whose precision Vulkan allows to be a few units in the last place.
inline constexpr Tolerance f32_exp{1e-9, 1e-4};
/// For f32 results rounded to halves: a value near a rounding boundary may be rounded either way.
inline constexpr Tolerance f16_rounding{1e-8, 1.0 / 1024};
/// The same for those in q8_0: an element may be a step of its block off, or a whole block's scale be the next half.
inline constexpr Tolerance q8_rounding{1e-6, 1.0 / 120};

struct Result {
  std::string name;
  std::vector<uint32_t> words;  // bit patterns of floats, or integers
  bool is_float = true;
  Tolerance tolerance;
};
using Results = std::vector<Result>;

/// What is wrong with `actual`, naming the element with the largest error; empty when it is within the tolerance of
/// `expected`.
std::string difference(const Result& expected, const Result& actual);

/// Fails the running test if the results differ by more than the larger of their tolerances.
void expect_same(const Results& expected, const Results& actual);

std::vector<float> floats(const std::vector<uint32_t>& words);
std::vector<uint32_t> words(std::span<const float> values);

/// A matrix in the form of a file.
struct FileMatrix {
  WeightType type = WeightType::f32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  std::vector<std::byte> data;

  WeightPart part() const { return {type, rows, cols, data}; }
};

class OpBench {
 public:
  explicit OpBench(Device& device) : device_(device) {}

  /// A buffer with `contents`, followed by the guard.
  template <class T>
  Buffer* buffer(const std::vector<T>& contents) {
    return guarded(as_bytes_of(contents));
  }
  /// A buffer of `count` words of poison, followed by the guard.
  Buffer* output(uint64_t count) { return buffer(std::vector<uint32_t>(count, poison)); }

  /// Activations with values [width, cols] and room for more rows, which are NaN.
  Activations* activations(uint32_t width, uint32_t cols, const std::vector<float>& values);
  /// Activations of NaN.
  Activations* output_activations(uint32_t width, uint32_t cols);

  Weight* weight(const FileMatrix& matrix);
  Weight* paired_weight(const FileMatrix& even, const FileMatrix& odd);
  Weight* joined_weight(const std::vector<FileMatrix>& matrices, WeightLayout layout);

  /// A cache with the given keys and values [slots, kv_heads, head_dim].
  KvLayer* kv(const KvShape& shape, const std::vector<float>& keys, const std::vector<float>& values);
  /// Several layers, zeroed.
  KvCache* kv_layers(const KvShape& shape, uint32_t layers);

  void run(const std::function<void(Recorder&)>& record);

  /// The tolerance of results of matrix products: `f32`, or half_operands or byte_operands on a device that rounds
  /// their operands.
  Tolerance of_products(Tolerance f32, WeightType type = WeightType::f32) const;
  /// Activations for products with integer_matrix(): small integers; or, where the device rounds activations to 8 bits,
  /// such that it rounds nothing.
  std::vector<float> integer_activations(Random& random, uint32_t width, uint32_t cols) const;
  /// The tolerance of these products: exact, unless the device rounds to halves and the weights are beyond the integers
  /// that a half holds, or sums may be beyond those of f32.
  Tolerance of_integer_products(WeightType type) const;

  /// The whole buffer with its guard.
  Result result(std::string name, const Buffer* buffer, Tolerance tolerance);
  Result integers(std::string name, const Buffer* buffer);
  /// Rows 0 ... width - 1. Fails the running test if the op changed more elements than these rows have.
  Result result(std::string name, const Activations* activations, uint32_t width, Tolerance tolerance);
  Result keys(std::string name, const KvLayer* layer, const KvShape& shape, Tolerance tolerance);
  Result values(std::string name, const KvLayer* layer, const KvShape& shape, Tolerance tolerance);

  /// The product of the activations with the norm's scale, as the sums of squares in activations cannot be read
  /// otherwise.
  Result norm_probe(const Activations* activations, uint32_t width);

 private:
  Buffer* guarded(std::span<const std::byte> contents);

  Device& device_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<Activations>> activations_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::vector<std::unique_ptr<KvCache>> caches_;
};

}  // namespace canopy::test
