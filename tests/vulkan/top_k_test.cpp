#include "engine/vulkan/logits.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {
namespace {

using testing::error_of;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct TopK {
  std::vector<uint32_t> ids;     // [width, k]
  std::vector<uint32_t> values;  // [width, k], the bits
  std::vector<float> log_sum_exp;
};

// The expected result by definition, in double, row by row.
TopK expected(const std::vector<float>& logits, uint32_t vocab, uint32_t k) {
  TopK result;
  for (size_t row = 0; row < logits.size(); row += vocab) {
    const std::span<const float> x(logits.data() + row, vocab);
    std::vector<uint32_t> order(vocab);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return x[a] > x[b] || (!std::isnan(x[a]) && std::isnan(x[b])); });
    for (uint32_t i = 0; i < k; ++i) {
      result.ids.push_back(order[i]);
      result.values.push_back(std::bit_cast<uint32_t>(x[order[i]]));
    }
    const double top = x[order[0]];
    double sum = 0;
    for (const float v : x) sum += std::isnan(v) ? 0 : std::exp(v - top);
    result.log_sum_exp.push_back(static_cast<float>(std::isinf(top) ? top : top + std::log(sum)));
  }
  return result;
}

class TopKTest : public testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    context_ = open();
  }

  /// Runs the shader over `logits`, with guard words behind each result.
  TopK run(const std::vector<float>& logits, uint32_t vocab, uint32_t k) {
    const auto width = static_cast<uint32_t>(logits.size() / vocab);
    const Buffer in = context_->create_buffer(BufferKind::device, logits.size() * 4, "logits");
    const Buffer ids = context_->create_buffer(BufferKind::device, (uint64_t{width} * k + 1) * 4, "ids");
    const Buffer values = context_->create_buffer(BufferKind::device, (uint64_t{width} * k + 1) * 4, "values");
    const Buffer sums = context_->create_buffer(BufferKind::device, (width + 1) * 4, "sums");
    const Buffer scratch = context_->create_buffer(BufferKind::device, top_k_scratch_bytes(width, vocab, k), "scratch");
    context_->upload(in, 0, std::as_bytes(std::span(logits)));
    CommandList list(*context_);
    for (const Buffer* buffer : {&ids, &values, &sums, &scratch}) list.fill(*buffer, 0, buffer->bytes(), poison);
    list.barrier();
    record_top_k(*context_, list, {in, ids, values, sums, scratch, width, vocab, k, lanes_});
    context_->run(list);
    return {guarded<uint32_t>(ids), guarded<uint32_t>(values), guarded<float>(sums)};
  }

  void check(const std::vector<float>& logits, uint32_t vocab, uint32_t k) {
    SCOPED_TRACE("vocab " + std::to_string(vocab) + ", k " + std::to_string(k));
    const TopK want = expected(logits, vocab, k);
    const TopK got = run(logits, vocab, k);
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_EQ(got.values, want.values);
    for (size_t w = 0; w < want.log_sum_exp.size(); ++w) {
      const float sum = want.log_sum_exp[w];
      if (std::isinf(sum)) {
        EXPECT_EQ(got.log_sum_exp[w], sum) << "row " << w;
      } else {
        EXPECT_NEAR(got.log_sum_exp[w], sum, 2e-5 + 1e-6 * std::abs(sum)) << "row " << w;
      }
    }
  }

  static constexpr uint32_t poison = 0x7FC12345;  // a NaN
  std::unique_ptr<Context> context_;
  uint32_t lanes_ = 0;

 private:
  template <class T>
  std::vector<T> guarded(const Buffer& buffer) {
    std::vector<uint32_t> words(buffer.bytes() / 4);
    context_->download(buffer, 0, std::as_writable_bytes(std::span(words)));
    EXPECT_EQ(words.back(), poison) << "written beyond the end";
    std::vector<T> values(words.size() - 1);
    std::transform(words.begin(), words.end() - 1, values.begin(), [](uint32_t w) { return std::bit_cast<T>(w); });
    return values;
  }
};
CANOPY_ON_EVERY_DEVICE(TopKTest);

std::vector<float> random_logits(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 6);
  std::vector<float> values(count);
  for (float& v : values) v = normal(engine);
  return values;
}

TEST_P(TopKTest, findsTheLargest) {
  static constexpr struct {
    uint32_t vocab, k, width;
  } shapes[] = {{1, 1, 3},    {3, 2, 2},    {5, 5, 3},      {64, 64, 2},   {65, 64, 2},    {257, 64, 3},   {1010, 7, 5},
                {1012, 8, 2}, {1012, 9, 2}, {10241, 64, 1}, {49152, 1, 1}, {49152, 64, 2}, {151669, 64, 1}};
  for (const auto& s : shapes) check(random_logits(size_t{s.vocab} * s.width, s.vocab + s.k), s.vocab, s.k);
}

TEST_P(TopKTest, givesTiesToTheLowestIds) {
  std::mt19937 engine(3);
  for (const uint32_t vocab : {64u, 255u, 1012u, 20000u}) {
    std::vector<float> coarse(vocab);
    for (float& v : coarse) v = static_cast<float>(engine() % 4);
    for (const uint32_t k : {1u, 5u, 64u}) {
      check(coarse, vocab, k);
      check(std::vector<float>(vocab, -7), vocab, k);
    }
  }
}

TEST_P(TopKTest, countsMinusZeroAsZero) {
  std::vector<float> logits(300, -0.0F);
  logits[7] = 0.0F;
  logits[200] = -1e-45F;
  check(logits, 300, 64);
}

TEST_P(TopKTest, findsAllOfThemInOneBlock) {
  for (const uint32_t stride : {1u, 4u, 256u}) {
    std::vector<float> logits(20000, -3);
    for (uint32_t i = 0; i < 64; ++i) logits[100 + i * stride] = static_cast<float>((i * 29) % 64);
    check(logits, 20000, 64);
  }
}

TEST_P(TopKTest, letsNanLose) {
  std::vector<float> logits = random_logits(2000, 5);
  for (size_t i = 0; i < logits.size(); i += 3) logits[i] = i % 2 == 0 ? nan : -nan;
  check(logits, 1000, 64);
  std::fill(logits.begin(), logits.end(), nan);
  logits[500] = -infinity;
  logits[999] = 3;
  logits[1000] = 2;
  check(logits, 1000, 5);  // fewer numbers than k: NaNs fill the rest
}

TEST_P(TopKTest, takesInfinities) {
  std::vector<float> logits(500, -infinity);
  check(logits, 500, 5);
  logits[3] = 1;
  logits[499] = 2;
  check(logits, 500, 5);
  logits[77] = infinity;
  check(logits, 500, 64);
}

TEST_P(TopKTest, sumsFarFromZero) {
  for (const float level : {300.0F, -300.0F, 3e38F}) check(std::vector<float>(4096, level), 4096, 3);
}

TEST_P(TopKTest, givesARowTheSameBitsInAnyCompany) {
  for (const uint32_t vocab : {1012u, 1013u}) {
    const std::vector<float> logits = random_logits(size_t{vocab} * 7, 9);
    const TopK together = run(logits, vocab, 10);
    for (uint32_t w = 0; w < 7; ++w) {
      const auto first = logits.begin() + w * vocab;
      const TopK alone = run({first, first + vocab}, vocab, w + 1);  // nor does the sum depend on k
      EXPECT_EQ(std::bit_cast<uint32_t>(alone.log_sum_exp[0]), std::bit_cast<uint32_t>(together.log_sum_exp[w])) << w;
    }
  }
}

TEST_P(TopKTest, splitsWhatABindingCannotHold) {
  const std::vector<float> logits = random_logits(2001 * 150, 21);
  const TopK whole = run(logits, 2001, 6);
  context_ = open({.max_storage_range = 600000});
  check(logits, 2001, 6);
  EXPECT_EQ(run(logits, 2001, 6).log_sum_exp, whole.log_sum_exp);
  context_ = open({.max_group_count = 64});
  check(logits, 2001, 6);
}

// Workgroups of the size that GPUs use give the same, whatever the device.
TEST_P(TopKTest, agreesWithLargerWorkgroups) {
  for (const uint32_t lanes : {128u, 256u}) {
    lanes_ = lanes;
    check(random_logits(2 * 49152, 2), 49152, 64);
    check(random_logits(2 * 1013, 2), 1013, 8);
    check(random_logits(5, 2), 5, 5);
    check(std::vector<float>(20000, 1), 20000, 64);
  }
}

TEST_P(TopKTest, refusesWhatDoesNotFit) {
  const Buffer small = context_->create_buffer(BufferKind::device, 64, "small");
  CommandList list(*context_);
  const auto record = [&](uint32_t vocab, uint32_t k) {
    return error_of([&] { record_top_k(*context_, list, {small, small, small, small, small, 1, vocab, k}); });
  };
  EXPECT_EQ(record(16, 0), "bad input: The k of top_k is 0, 1 to 16 is allowed.");
  EXPECT_EQ(record(16, 17), "bad input: The k of top_k is 17, 1 to 16 is allowed.");
  EXPECT_EQ(record(0, 1), "bad input: The vocabulary of top_k is 0, 1 to 1048576 is allowed.");
  EXPECT_EQ(record(17, 1), "bad input: The buffer \"logits\" of top_k has 64 bytes, 68 are needed.");
  EXPECT_EQ(record(16, 1), "bad input: The buffer \"scratch\" of top_k has 64 bytes, 1024 are needed.");
}

// Run by hand: --gtest_also_run_disabled_tests --gtest_filter=*Bench*
TEST_P(TopKTest, DISABLED_Bench) {
  for (const uint32_t k : {1u, 8u, 64u}) {
    for (const uint32_t width : {1u, 15u}) {
      const uint32_t vocab = 49152;
      const std::vector<float> logits = random_logits(size_t{vocab} * width, 1);
      const Buffer in = context_->create_buffer(BufferKind::device, logits.size() * 4, "logits");
      const Buffer out = context_->create_buffer(BufferKind::device, size_t{width} * k * 4, "out");
      const Buffer out2 = context_->create_buffer(BufferKind::device, size_t{width} * k * 4, "out");
      const Buffer sums = context_->create_buffer(BufferKind::device, size_t{width} * 4, "out");
      const Buffer scratch =
          context_->create_buffer(BufferKind::device, top_k_scratch_bytes(width, vocab, k), "scratch");
      context_->upload(in, 0, std::as_bytes(std::span(logits)));
      CommandList list(*context_);
      record_top_k(*context_, list, {in, out, out2, sums, scratch, width, vocab, k});
      double best = 1e9;
      for (int i = 0; i < 30; ++i) {
        const auto start = std::chrono::steady_clock::now();
        context_->run(list);
        best =
            std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      }
      std::printf("k %u, width %u: %.3f ms a row\n", k, width, best / width);
    }
  }
}

}  // namespace
}  // namespace canopy::vk
