// Parts of buffers as operands: ops read and write their range of the whole, and nothing beside it.

#include <algorithm>
#include <bit>
#include <string>

#include "engine/base/error.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

class PartTest : public OpTest {
 protected:
  std::vector<float> read(const Buffer& buffer, size_t count) {
    std::vector<float> values(count);
    device().read(buffer, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }
};

TEST_P(PartTest, OpsReadAndWriteTheirRangeOnly) {
  constexpr uint32_t rows = 3, vocab = 100;
  Random random(11);
  const std::vector<float> logits = random.values(rows * vocab), untouched(256, -7.0f);
  const auto input = device().allocate(8 * kPartAlignment, "input");
  const auto results = device().allocate(1024, "results");
  const auto logits_part = device().part(*input, kPartAlignment, logits.size() * 4, "logits");
  const auto pairs_part = device().part(*input, 7 * kPartAlignment, 2 * 2 * 4, "pairs");
  const auto best = device().part(*results, kPartAlignment, rows * 2 * 4, "best");
  const auto sums = device().part(*results, 2 * kPartAlignment, rows * 4, "sums");
  const auto picked = device().part(*results, 3 * kPartAlignment, 2 * 4, "picked");
  const auto ids = device().allocate(rows * 4, "ids");
  const auto values = device().allocate(rows * 4, "values");

  // All of the input in one upload, as a pass does it.
  std::vector<float> upload(8 * kPartAlignment / 4);
  std::ranges::copy(logits, upload.begin() + kPartAlignment / 4);
  const std::vector<uint32_t> pairs = {2, 41, 0, 99};
  device().write(*input, 0, as_bytes_of(upload));
  device().write(*pairs_part, 0, as_bytes_of(pairs));
  device().write(*results, 0, as_bytes_of(untouched));
  Recorder record;
  record(ArgmaxArgs{.width = rows, .logits = logits_part.get(), .vocab = vocab, .out = best.get()});
  record(TopKArgs{.width = rows,
                  .logits = logits_part.get(),
                  .vocab = vocab,
                  .k = 1,
                  .ids = ids.get(),
                  .values = values.get(),
                  .log_sum_exp = sums.get()});
  record(PickArgs{.count = 2,
                  .rows = rows,
                  .logits = logits_part.get(),
                  .vocab = vocab,
                  .pairs = pairs_part.get(),
                  .out = picked.get()});
  const auto commands = device().compile(record.finish());
  ASSERT_TRUE(device().run(*commands));

  std::vector<float> expected = untouched;
  const auto all = read(*results, 256), best_pairs = read(*best, rows * 2), sum = read(*sums, rows);
  for (uint32_t row = 0; row < rows; ++row) {
    const auto first = logits.begin() + row * vocab;
    EXPECT_EQ(best_pairs[row * 2 + 1], *std::max_element(first, first + vocab)) << row;
    EXPECT_GT(sum[row], best_pairs[row * 2 + 1]) << row;
  }
  EXPECT_EQ(read(*picked, 2), (std::vector<float>{logits[2 * vocab + 41], logits[99]}));
  std::copy_n(all.begin() + 64, rows * 2, expected.begin() + 64);
  std::copy_n(all.begin() + 128, rows, expected.begin() + 128);
  std::copy_n(all.begin() + 192, 2, expected.begin() + 192);
  EXPECT_TRUE(std::equal(all.begin(), all.end(), expected.begin(),
                         [](float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }));
}

TEST_P(PartTest, RangesThatDoNotFitAreRefused) {
  const auto whole = device().allocate(1000, "whole");
  const auto refusal = [&](uint64_t offset, uint64_t bytes) -> std::string {
    try {
      device().part(*whole, offset, bytes, "rows");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(768, 232), "");
  for (const auto& [offset, bytes] : {std::pair<uint64_t, uint64_t>{768, 236}, {4, 4}, {0, 0}, {1024, 4}, {0, ~0ull}}) {
    EXPECT_NE(refusal(offset, bytes).find("\"rows\""), std::string::npos) << offset << ", " << bytes;
  }
  const auto part = device().part(*whole, 256, 100, "rows");
  const std::vector<float> values(26);
  EXPECT_THROW(device().write(*part, 0, as_bytes_of(values)), Error) << "within the whole, but not within the part";
}

CANOPY_OP_TESTS(PartTest);

}  // namespace
}  // namespace canopy::test
