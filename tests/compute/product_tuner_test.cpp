// The choice of kernels by timing, on a device: that it is made, kept, said, and changes no bit.

#include "engine/vulkan/product_tuner.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "engine/base/error.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/expert_data.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/op_test.h"
#include "tests/compute/random_data.h"

namespace canopy::test {
namespace {

constexpr uint32_t kTunedRows = 192, kTunedCols = 2304;  // large enough to be timed; two chunks
constexpr WeightType kTunedType = WeightType::q8_0;

vk::KernelFamily family_under_test() {
  const char* family = std::getenv("CANOPY_TEST_FAMILY");
  return family != nullptr && *family != '\0' ? vk::kernel_family(family).value() : vk::KernelFamily::fma;
}

// As on a GPU, with little time to measure and few copies. llvmpipe compiles one of a GPU's kernels on matrix cores for
// a minute: it times two of its own.
VulkanDeviceOptions tuned(const std::filesystem::path& cache, double budget_s) {
  VulkanDeviceOptions options;
  options.family = family_under_test();
  const bool few = vk::on_matrix_cores(*options.family) && is_slow_device();
  options.as_software = few;
  options.max_tile = 4;
  options.cache_folder = cache;
  options.tuning = vk::TuningOptions{budget_s, 1 << 20, few ? 2 : SIZE_MAX};
  return options;
}

// Each op on a weight of a shape that is timed, and one of them at another width.
struct TunedProducts {
  std::vector<uint32_t> words;
  std::string kernels;
};

TunedProducts tuned_products(const VulkanDeviceOptions& options) {
  const auto device = open_vulkan_device(options);
  OpBench bench(*device);
  Random random(3);
  const Weight* weight = bench.weight(random.matrix(kTunedType, kTunedRows, kTunedCols));
  TunedProducts all;
  for (const uint32_t width : {1u, 3u}) {
    const Activations* in = bench.activations(width, kTunedCols, random.values(uint64_t{width} * kTunedCols));
    Buffer* out = bench.output(uint64_t{width} * kTunedRows);
    Buffer* x = bench.buffer(random.values(uint64_t{width} * kTunedRows));
    const Buffer* norm = bench.buffer(random.values(kTunedRows));
    Activations* added = bench.output_activations(width, kTunedRows);
    Activations* gated = bench.output_activations(width, kTunedRows / 2);
    bench.run([&](Recorder& record) {
      if (width == 1) record(LinearArgs{width, weight, in, 1e-5f, out, kTunedRows, 0});
      if (width == 1) record(LinearAddArgs{width, weight, in, x, {norm}, added});
      record(LinearSwigluArgs{width, weight, in, 1e-5f, gated});
    });
    for (const Result& result :
         {bench.result("out", out, exact), bench.result("x", x, exact), bench.result("added", added, width, exact),
          bench.result("gated", gated, width, exact)}) {
      all.words.insert(all.words.end(), result.words.begin(), result.words.end());
    }
  }
  all.kernels = device->info().kernels;
  for (const auto& message : validation_messages(*device)) ADD_FAILURE() << message.id << ": " << message.text;
  return all;
}

class LoggedMessages {
 public:
  LoggedMessages() {
    set_log_sink([this](LogLevel level, std::string_view message) {
      all += std::string(to_string(level)) + ": " + std::string(message) + "\n";
    });
  }
  ~LoggedMessages() { set_log_sink({}); }
  bool has(std::string_view text) const { return all.find(text) != std::string::npos; }
  std::string all;
};

size_t count_of(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::filesystem::path choices_in(const TempFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().filename().string().starts_with("variants-")) return entry.path();
  }
  return {};
}

class ProductTunerTest : public ::testing::Test {
 protected:
  VulkanDeviceOptions untuned() {
    VulkanDeviceOptions options = tuned({}, 0);
    options.tuning.reset();
    return options;
  }
  TempFolder folder_;
};

TEST_F(ProductTunerTest, ChoosesByTimingWithoutChangingABit) {
  const TunedProducts plain = tuned_products(untuned());
  EXPECT_EQ(plain.kernels.find(';'), std::string::npos) << plain.kernels;
  TunedProducts first;
  {
    const LoggedMessages messages;
    first = tuned_products(tuned(folder_.path(), 600));
    EXPECT_TRUE(messages.has("Timed kernels for 3 shapes")) << messages.all;
    EXPECT_TRUE(messages.has("Timed kernels for 1 shape ")) << messages.all;
    EXPECT_FALSE(messages.has("warning")) << messages.all;  // a variant with other bits
  }
  EXPECT_EQ(first.words, plain.words);
  for (const char* product :
       {"; linear Q8_0 192x2304 x1 (", "; add Q8_0 192x2304 x1 (", "; swiglu Q8_0 192x2304 x1 ("}) {
    EXPECT_EQ(count_of(first.kernels, product), 1u) << first.kernels;
  }
  EXPECT_EQ(count_of(first.kernels, "; "), 4u) << first.kernels;

  // The next time nothing is measured: there is no time for it.
  const LoggedMessages messages;
  const TunedProducts second = tuned_products(tuned(folder_.path(), 0));
  EXPECT_EQ(second.words, plain.words);
  EXPECT_EQ(second.kernels, first.kernels);
  EXPECT_FALSE(messages.has("Timed")) << messages.all;
}

TEST_F(ProductTunerTest, MeasuresNothingWithoutTime) {
  const LoggedMessages messages;
  const TunedProducts plain = tuned_products(tuned(folder_.path(), 0));
  EXPECT_EQ(plain.words, tuned_products(untuned()).words);
  EXPECT_EQ(choices_in(folder_), std::filesystem::path());
  EXPECT_FALSE(messages.has("Timed")) << messages.all;
}

// What is named in the description runs, whether it was measured or not.
TEST_F(ProductTunerTest, TakesWhatTheFileSaysAndIgnoresADamagedOne) {
  const TunedProducts first = tuned_products(tuned(folder_.path(), 600));
  const std::filesystem::path path = choices_in(folder_);
  ASSERT_FALSE(path.empty());
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 2));
    file.put('#');
  }
  const LoggedMessages messages;
  const TunedProducts again = tuned_products(tuned(folder_.path(), 0));
  EXPECT_EQ(again.words, first.words);
  EXPECT_TRUE(messages.has("are not used: ")) << messages.all;
}

// Both products of a mixture's layer: what timing chooses for the first, the second goes by.
TunedProducts tuned_experts(const VulkanDeviceOptions& options) {
  const auto device = open_vulkan_device(options);
  OpBench bench(*device);
  Random random(7);
  const ExpertCounts experts{6, 2};
  const uint32_t ffn = 96, hidden = 288;  // a weight that is large enough to be timed
  const ExpertMatrices::Weights weights = ExpertMatrices(random, kTunedType, experts, ffn, hidden).on(bench);
  TunedProducts all;
  for (const uint32_t width : {1u, 3u, 20u}) {
    const Buffer* chosen = bench.buffer(random_choice(random, experts, width, false));
    const Activations* in = bench.activations(width, hidden, random.values(uint64_t{width} * hidden));
    Activations* gated = bench.output_activations(width * experts.used, ffn);
    Buffer* x = bench.buffer(random.values(uint64_t{width} * hidden));
    Activations* added = bench.output_activations(width, hidden);
    bench.run([&](Recorder& record) {
      record(ExpertSwigluArgs{width, experts, weights.gate_up, in, 1e-5f, chosen, gated});
      record(ExpertAddArgs{.width = width,
                           .experts = experts,
                           .weight = weights.down,
                           .in = gated,
                           .chosen = chosen,
                           .shares = bench.buffer(random.values(uint64_t{width} * experts.used)),
                           .products = bench.output(uint64_t{width} * experts.used * hidden),
                           .x = x,
                           .norm = {bench.buffer(random.values(hidden))},
                           .out = added});
    });
    for (const Result& result : {bench.result("gated", gated, width * experts.used, exact), bench.result("x", x, exact),
                                 bench.result("added", added, width, exact)}) {
      all.words.insert(all.words.end(), result.words.begin(), result.words.end());
    }
  }
  all.kernels = device->info().kernels;
  for (const auto& message : validation_messages(*device)) ADD_FAILURE() << message.id << ": " << message.text;
  return all;
}

TEST_F(ProductTunerTest, ChoosesHowExpertsAreComputedWithoutChangingABit) {
  const TunedProducts plain = tuned_experts(untuned());
  EXPECT_EQ(plain.kernels.find(';'), std::string::npos) << plain.kernels;
  TunedProducts first;
  {
    const LoggedMessages messages;
    first = tuned_experts(tuned(folder_.path(), 600));
    EXPECT_TRUE(messages.has("Timed kernels")) << messages.all;
    EXPECT_FALSE(messages.has("warning")) << messages.all;  // a variant with other bits
    EXPECT_FALSE(messages.has("cannot be used")) << messages.all;
  }
  EXPECT_EQ(first.words, plain.words);
  // Widths that are no power of two share a choice with the next one.
  for (const char* product : {"; experts Q8_0 2 of 6 192x288 x1 (", "; experts Q8_0 2 of 6 192x288 x4 (",
                              "; experts Q8_0 2 of 6 192x288 x32 ("}) {
    EXPECT_EQ(count_of(first.kernels, product), 1u) << first.kernels;
  }
  const LoggedMessages messages;
  const TunedProducts second = tuned_experts(tuned(folder_.path(), 0));
  EXPECT_EQ(second.words, plain.words);
  EXPECT_EQ(second.kernels, first.kernels);
  EXPECT_FALSE(messages.has("Timed")) << messages.all;
}

TEST_F(ProductTunerTest, EndsWhenAskedTo) {
  const auto device = open_vulkan_device(tuned(folder_.path(), 600));
  OpBench bench(*device);
  Random random(3);
  const Weight* weight = bench.weight(random.matrix(kTunedType, kTunedRows, kTunedCols));
  const Activations* in = bench.activations(1, kTunedCols, random.values(kTunedCols));
  Buffer* out = bench.output(kTunedRows);
  std::stop_source source;
  source.request_stop();
  const std::vector<Op> ops = {LinearArgs{1, weight, in, 0, out, kTunedRows, 0}};
  EXPECT_EQ(device->compile(ops, source.get_token()), nullptr);
  EXPECT_EQ(device->info().kernels.find(';'), std::string::npos);
  EXPECT_NE(device->compile(ops), nullptr);
  EXPECT_NE(device->info().kernels.find("; linear"), std::string::npos);
}

TEST(TunedWidthTest, IsTheSameForABucket) {
  using vk::KernelFamily;
  EXPECT_EQ(vk::tuned_width(KernelFamily::matrix, 1), 1u);
  EXPECT_EQ(vk::tuned_width(KernelFamily::matrix, 2), 16u);
  EXPECT_EQ(vk::tuned_width(KernelFamily::matrix, 16), 16u);
  EXPECT_EQ(vk::tuned_width(KernelFamily::matrix, 33), 64u);
  EXPECT_EQ(vk::tuned_width(KernelFamily::matrix, 1000), 128u);
  EXPECT_EQ(vk::tuned_width(KernelFamily::fma, 3), 4u);
  EXPECT_EQ(vk::tuned_width(KernelFamily::fma, 1000), 32u);
}

}  // namespace
}  // namespace canopy::test
