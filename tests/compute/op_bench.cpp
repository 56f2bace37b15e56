#include "tests/compute/op_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "tests/compute/random_data.h"

namespace canopy::test {
namespace {

constexpr uint64_t guard_words = 64;
constexpr uint32_t spare_rows = 3;

std::string describe(const Result& expected, const Result& actual, size_t i) {
  std::ostringstream text;
  text << expected.name << ", word " << i << " of " << expected.words.size() << ": expected ";
  if (expected.words[i] == poison) {
    text << "untouched memory";
  } else if (expected.is_float) {
    text << std::bit_cast<float>(expected.words[i]);
  } else {
    text << expected.words[i];
  }
  text << ", got ";
  if (actual.is_float) {
    text << std::bit_cast<float>(actual.words[i]);
  } else {
    text << actual.words[i];
  }
  text << std::hex << " (0x" << actual.words[i] << ")";
  return text.str();
}

std::string float_difference(const Result& expected, const Result& actual) {
  double error_squares = 0;
  double squares = 0;
  double worst = -1;
  double largest = 0;
  size_t worst_at = 0;
  for (size_t i = 0; i < expected.words.size(); ++i) {
    const auto want = std::bit_cast<float>(expected.words[i]);
    const auto have = std::bit_cast<float>(actual.words[i]);
    if (std::isnan(want) && std::isnan(have) && expected.words[i] != poison) continue;
    if (want == have || (expected.words[i] == poison && actual.words[i] == poison)) {
      if (std::isfinite(want)) {
        squares += double{want} * want;
        largest = std::max(largest, std::abs(double{want}));
      }
      continue;
    }
    if (!std::isfinite(want) || !std::isfinite(have)) return describe(expected, actual, i);
    const double error = std::abs(double{want} - have);
    error_squares += error * error;
    squares += double{want} * want;
    largest = std::max(largest, std::abs(double{want}));
    if (error > worst) {
      worst = error;
      worst_at = i;
    }
  }
  if (worst < 0) return {};
  const Tolerance& allowed = expected.tolerance;
  if (error_squares <= allowed.nmse * squares && worst <= allowed.max_error * largest) return {};
  std::ostringstream text;
  text << describe(expected, actual, worst_at) << "; NMSE " << error_squares / squares << " (allowed " << allowed.nmse
       << "), worst error " << worst << " (allowed " << allowed.max_error * largest << ")";
  return text.str();
}

}  // namespace

std::string difference(const Result& expected, const Result& actual) {
  if (expected.words.size() != actual.words.size()) {
    return expected.name + ": expected " + std::to_string(expected.words.size()) + " words, got " +
           std::to_string(actual.words.size());
  }
  if (expected.is_float) return float_difference(expected, actual);
  const auto [want, have] = std::mismatch(expected.words.begin(), expected.words.end(), actual.words.begin());
  if (want == expected.words.end()) return {};
  return describe(expected, actual, static_cast<size_t>(want - expected.words.begin()));
}

void expect_same(const Results& expected, const Results& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    Result wanted = expected[i];
    wanted.tolerance.nmse = std::max(wanted.tolerance.nmse, actual[i].tolerance.nmse);
    wanted.tolerance.max_error = std::max(wanted.tolerance.max_error, actual[i].tolerance.max_error);
    EXPECT_EQ(difference(wanted, actual[i]), "");
  }
}

std::vector<float> floats(const std::vector<uint32_t>& words) {
  std::vector<float> values(words.size());
  std::transform(words.begin(), words.end(), values.begin(), [](uint32_t w) { return std::bit_cast<float>(w); });
  return values;
}

std::vector<uint32_t> words(std::span<const float> values) {
  std::vector<uint32_t> words(values.size());
  std::transform(values.begin(), values.end(), words.begin(), [](float v) { return std::bit_cast<uint32_t>(v); });
  return words;
}

Buffer* OpBench::guarded(std::span<const std::byte> contents) {
  std::vector<uint32_t> data((contents.size() + 3) / 4 + guard_words, poison);
  if (!contents.empty()) std::memcpy(data.data(), contents.data(), contents.size());
  buffers_.push_back(device_.allocate(data.size() * sizeof(uint32_t), "test buffer"));
  device_.write(*buffers_.back(), 0, as_bytes_of(data));
  return buffers_.back().get();
}

Activations* OpBench::output_activations(uint32_t width, uint32_t cols) {
  const uint32_t max_width = width + spare_rows;
  activations_.push_back(device_.allocate_activations(max_width, cols, "test activations"));
  const std::vector<float> nothing(size_t{max_width} * cols, std::bit_cast<float>(poison));
  device_.write_activations(*activations_.back(), max_width, nothing);
  return activations_.back().get();
}

Activations* OpBench::activations(uint32_t width, uint32_t cols, const std::vector<float>& values) {
  Activations* activations = output_activations(width, cols);
  device_.write_activations(*activations, width, values);
  return activations;
}

Weight* OpBench::weight(const FileMatrix& matrix) {
  const WeightPart part = matrix.part();
  weights_.push_back(device_.make_weight({&part, 1}, WeightLayout::stacked, "test weight"));
  return weights_.back().get();
}

Weight* OpBench::paired_weight(const FileMatrix& even, const FileMatrix& odd) {
  const WeightPart parts[] = {even.part(), odd.part()};
  weights_.push_back(device_.make_weight(parts, WeightLayout::paired, "test weight"));
  return weights_.back().get();
}

Weight* OpBench::joined_weight(const std::vector<FileMatrix>& matrices, WeightLayout layout) {
  std::vector<WeightPart> parts;
  for (const FileMatrix& matrix : matrices) parts.push_back(matrix.part());
  weights_.push_back(device_.make_weight(parts, layout, "test weight"));
  return weights_.back().get();
}

KvLayer* OpBench::kv(const KvShape& shape, const std::vector<float>& keys, const std::vector<float>& values) {
  KvLayer& layer = kv_layers(shape, 1)->layer(0);
  device_.write_kv(layer, false, 0, keys);
  if (!shape.is_latent()) device_.write_kv(layer, true, 0, values);
  return &layer;
}

KvCache* OpBench::kv_layers(const KvShape& shape, uint32_t layers) {
  caches_.push_back(device_.allocate_kv(shape, layers, "test cache"));
  return caches_.back().get();
}

void OpBench::run(const std::function<void(Recorder&)>& record) {
  Recorder recorder;
  record(recorder);
  const auto commands = device_.compile(recorder.finish());
  ASSERT_TRUE(device_.run(*commands));
}

Result OpBench::result(std::string name, const Buffer* buffer, Tolerance tolerance) {
  std::vector<uint32_t> words(buffer->bytes() / sizeof(uint32_t));
  device_.read(*buffer, 0, std::as_writable_bytes(std::span(words)));
  return {std::move(name), std::move(words), true, tolerance};
}

Result OpBench::integers(std::string name, const Buffer* buffer) {
  Result result = this->result(std::move(name), buffer, exact);
  result.is_float = false;
  return result;
}

Result OpBench::result(std::string name, const Activations* activations, uint32_t width, Tolerance tolerance) {
  // Read at another width, activations show the same memory in another order, so only the number of changed elements
  // can be checked.
  const std::vector<float> all = device_.read_activations(*activations, activations->max_width());
  const auto changed = std::count_if(all.begin(), all.end(), [](float v) { return !std::isnan(v); });
  EXPECT_LE(static_cast<uint64_t>(changed), uint64_t{width} * activations->cols())
      << name << ": the op wrote outside the " << width << " rows of its activations";
  return {std::move(name), words(device_.read_activations(*activations, width)), true, tolerance};
}

Tolerance OpBench::of_products(Tolerance f32, WeightType type) const {
  const bool dense = is_dense(type);
  if (device_.info().rounds_to_8_bits && !dense) {
    return {std::max(f32.nmse, byte_operands.nmse), std::max(f32.max_error, byte_operands.max_error)};
  }
  if (device_.info().adds_in_halves && !dense) return half_sums;
  if (device_.info().rounds_to_16_bits && !dense) {
    // Of results that are rounded to halves, more are near a boundary.
    return {4 * f32.nmse + short_operands.nmse, std::max(f32.max_error, short_operands.max_error)};
  }
  const std::string& kernels = device_.info().kernels;
  const bool halves = kernels.find(" matrix") != std::string::npos || kernels.find(" warpgroups") != std::string::npos;
  return halves ? half_operands : f32;
}

// In each block the largest is 127, so that a step is 1.
std::vector<float> OpBench::integer_activations(Random& random, uint32_t width, uint32_t cols) const {
  if (!device_.info().rounds_to_8_bits) return random.integers(size_t{width} * cols, 4);
  std::vector<float> values = random.integers(size_t{width} * cols, 127);
  for (size_t w = 0; w < width; ++w) {
    for (size_t k = 0; k < cols; k += 32) values[w * cols + k + (w + k / 32) % std::min(size_t{32}, cols - k)] = 127;
  }
  return values;
}

Tolerance OpBench::of_integer_products(WeightType type) const {
  const bool large = type == WeightType::iq4_xs || type == WeightType::q6_k;
  const bool larger = type == WeightType::q4_k || type == WeightType::q5_k;
  const DeviceInfo& info = device_.info();
  const bool is_rounded = large || (larger && info.rounds_to_8_bits) ||
                          (!is_dense(type) && (info.adds_in_halves || info.rounds_to_16_bits));
  return is_rounded ? of_products(exact, type) : exact;
}

Result OpBench::keys(std::string name, const KvLayer* layer, const KvShape& shape, Tolerance tolerance) {
  return {std::move(name), words(device_.read_kv(*layer, false, 0, shape.slots)), true, tolerance};
}

Result OpBench::values(std::string name, const KvLayer* layer, const KvShape& shape, Tolerance tolerance) {
  return {std::move(name), words(device_.read_kv(*layer, true, 0, shape.slots)), true, tolerance};
}

Result OpBench::norm_probe(const Activations* activations, uint32_t width) {
  constexpr uint32_t rows = 4;
  Random random(99);
  const Weight* probe = weight(random.matrix(WeightType::f32, rows, activations->cols()));
  Buffer* out = output(uint64_t{width} * rows);
  run([&](Recorder& r) { r(LinearArgs{width, probe, activations, 1e-5f, out, rows, 0}); });
  // What is probed may itself be of a product with quantized weights.
  const bool short_values = device_.info().rounds_to_16_bits;
  return result("norm probe", out, of_products(f32_rounding, short_values ? WeightType::q8_0 : WeightType::f32));
}

}  // namespace canopy::test
