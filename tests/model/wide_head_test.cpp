// The head of Qwen3-8B in BF16, 1.2 GB: more than one buffer holds, or one binding reaches.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/compute/ops.h"
#include "engine/vulkan/vulkan_device.h"

namespace canopy::test {
namespace {

constexpr uint32_t kVocab = 151936, kHidden = 4096;
constexpr uint32_t kDifferent = 1021;  // rows; a prime, so that every shard begins with another one

/// Rows that repeat, each other than its neighbours.
class RepeatedRows {
 public:
  RepeatedRows() : values_(uint64_t{kDifferent} * kHidden) {
    std::mt19937 random(7);
    std::uniform_int_distribution<int> small(-8, 8);  // sums of products are exact
    for (uint16_t& value : values_) value = f32_to_bf16(static_cast<float>(small(random)));
  }
  WeightPart part() const {
    WeightPart part{WeightType::bf16, kVocab, kHidden};
    part.read = [this](uint32_t first, uint32_t count, std::vector<std::byte>& scratch) {
      scratch.resize(uint64_t{count} * kHidden * 2);
      for (uint32_t i = 0; i < count; ++i) {
        std::memcpy(&scratch[uint64_t{i} * kHidden * 2], row(first + i), kHidden * 2);
      }
      return std::span<const std::byte>(scratch);
    };
    return part;
  }
  double times(uint32_t index, const std::vector<float>& in) const {
    double sum = 0;
    for (uint32_t k = 0; k < kHidden; ++k) sum += double{bf16_to_f32(row(index)[k])} * in[k];
    return sum;
  }

 private:
  const uint16_t* row(uint32_t index) const { return &values_[uint64_t{index % kDifferent} * kHidden]; }
  std::vector<uint16_t> values_;
};

class WideHead : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Range, WideHead, ::testing::Values(1024, 128),
                         [](const auto& info) { return std::to_string(info.param) + "_MiB"; });

TEST_P(WideHead, GivesEveryLogit) {
  VulkanDeviceOptions options;
  options.context.max_storage_range = GetParam() << 20;
  options.fma = vk::FmaConfig{};
  const auto device = open_vulkan_device(options);
  if (device->info().name.find("SwiftShader") != std::string::npos) GTEST_SKIP() << "SwiftShader takes a minute";
  if (device->memory().available < uint64_t{3} << 29) GTEST_SKIP() << "less than 1.5 GiB of memory are free";
  const RepeatedRows rows;
  const WeightPart parts[] = {rows.part()};
  EXPECT_EQ(device->weight_bytes(parts, WeightLayout::stacked), uint64_t{kVocab} * kHidden * 2);
  device->expect_weights(std::vector<WeightRequest>{{{parts[0]}, WeightLayout::stacked}});
  const auto head = device->make_weight(parts, WeightLayout::stacked, "output");
  std::vector<float> in(kHidden);
  for (uint32_t k = 0; k < kHidden; ++k) in[k] = static_cast<float>(static_cast<int>(k * 37 % 11) - 5);
  const auto activations = device->allocate_activations(1, kHidden, "in");
  device->write_activations(*activations, 1, in);
  const auto logits = device->allocate(uint64_t{kVocab} * sizeof(float), "logits");
  Recorder record;
  record(LinearArgs{1, head.get(), activations.get(), 0, logits.get(), kVocab, 0});
  const auto commands = device->compile(record.finish(), {});
  ASSERT_TRUE(device->run(*commands, {}));
  std::vector<float> found(kVocab);
  device->read(*logits, 0, std::as_writable_bytes(std::span(found)));
  std::vector<double> expected(kDifferent);
  for (uint32_t i = 0; i < kDifferent; ++i) expected[i] = rows.times(i, in);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kVocab; ++i) {
    if (found[i] != expected[i % kDifferent] && ++wrong <= 5) {
      ADD_FAILURE() << "row " << i << ": " << found[i] << " instead of " << expected[i % kDifferent];
    }
  }
  EXPECT_EQ(wrong, 0u);
  for (const auto& message : validation_messages(*device)) ADD_FAILURE() << message.id << ": " << message.text;
}

}  // namespace
}  // namespace canopy::test
