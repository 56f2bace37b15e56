// The op `sample` against the sampler of the host: the same token after every row, whatever the settings.

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/error.h"
#include "engine/speculation/sampler.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct SampleCase {
  uint32_t vocab;
  std::vector<float> logits;  // [W, vocab]
  SamplingSettings settings;
  std::vector<uint32_t> text = {};
  std::vector<SampledRow> rows = {};  // [first_row + W]; empty: rows of their own
  uint32_t first_row = 0;
  uint64_t turn = 3;
  uint64_t position = 17;

  Results operator()(Device& device) const {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(logits.size() / vocab);
    TokenAdjustments adjustments(settings, vocab);
    adjustments.add(text);
    SamplingWords words = sampling_words(settings, turn, position);
    words.adjustments = static_cast<uint32_t>(adjustments.all().size());
    std::vector<TokenAdjustment> table(adjustments.all().begin(), adjustments.all().end());
    table.resize(table.size() + 5, {0, 1000, 1000});  // do not count
    std::vector<SampledRow> all = rows;
    all.resize(size_t{first_row} + width);
    Buffer* in = bench.buffer(logits);
    const Buffer* how = bench.buffer(std::vector<SamplingWords>{words});
    const Buffer* path = bench.buffer(all);
    const Buffer* adjusted = adjustments.any() ? bench.buffer(table) : nullptr;
    Buffer* out = bench.output(uint64_t{first_row} + width);
    bench.run([&](Recorder& r) {
      r(SampleArgs{.width = width,
                   .logits = in,
                   .vocab = vocab,
                   .settings = how,
                   .rows = path,
                   .adjustments = adjusted,
                   .most_adjustments = static_cast<uint32_t>(table.size()),
                   .random = words.inverse_temperature != 0,
                   .filtered = words.top_k != 0 || words.top_p != 0,
                   .out = out,
                   .first_row = first_row});
    });
    return {bench.integers("tokens", out), bench.integers("logits", in)};
  }
};

/// Logits like a model's: a few far above the rest.
std::vector<float> peaked(Random& random, size_t count, float spread) {
  std::vector<float> logits = random.values(count);
  for (float& x : logits) x = spread * x * x * x;
  return logits;
}

std::string described(const SamplingSettings& s) {
  return "temperature " + std::to_string(s.temperature) + ", top-k " + std::to_string(s.top_k) + ", top-p " +
         std::to_string(s.top_p) + ", min-p " + std::to_string(s.min_p) + ", repetition " +
         std::to_string(s.repetition_penalty) + ", presence " + std::to_string(s.presence_penalty) + ", frequency " +
         std::to_string(s.frequency_penalty) + ", biases " + std::to_string(s.logit_bias.size());
}

class SampleTest : public OpTest {
 protected:
  void check(const SampleCase& c) {
    SCOPED_TRACE("vocabulary " + std::to_string(c.vocab) + ", " + described(c.settings));
    compare(c);
  }
};

SamplingSettings settings_of(uint32_t kind, Random& random) {
  static constexpr float temperatures[] = {1, 0.7f, 0, 1.5f, 0.05f, 30, 1e-30f, 1e30f};
  static constexpr uint32_t top_ks[] = {0, 0, 40, 1, 3, 200, 100000};
  static constexpr float top_ps[] = {1, 0.95f, 1, 0.5f, 1e-9f, 0.999f};
  static constexpr float min_ps[] = {0, 0, 0.05f, 0.9f};
  SamplingSettings s;
  s.temperature = temperatures[kind % 8];
  s.top_k = top_ks[random.below(7)];
  s.top_p = top_ps[random.below(6)];
  s.min_p = min_ps[random.below(4)];
  s.seed = uint64_t{random.below(0xFFFFFFFF)} << 32 | random.below(0xFFFFFFFF);
  if (kind % 3 == 0) s.repetition_penalty = 1.0f + static_cast<float>(random.below(10)) / 10;
  if (kind % 5 == 0) s.presence_penalty = 0.5f;
  if (kind % 7 == 0) s.frequency_penalty = -0.25f;
  if (kind % 4 == 0) s.logit_bias = {{0, 2.0f}, {0, -0.5f}};
  return s;
}

TEST_P(SampleTest, AgreesWithTheHostsSampler) {
  static constexpr struct {
    uint32_t vocab, width, kinds;
  } shapes[] = {{1, 3, 24}, {31, 8, 240}, {257, 8, 240}, {1024, 5, 48}, {5003, 4, 48}, {49152, 2, 16}, {151936, 1, 8}};
  for (const auto& shape : shapes) {
    Random random(shape.vocab);
    for (uint32_t kind = 0; kind < shape.kinds; ++kind) {
      SampleCase c{shape.vocab, peaked(random, size_t{shape.vocab} * shape.width, 4.0f + static_cast<float>(kind)), {}};
      c.settings = settings_of(kind, random);
      for (int i = 0; i < 50; ++i) c.text.push_back(random.below(100));
      check(c);
    }
  }
}

TEST_P(SampleTest, GivesTiesToTheLowestId) {
  Random random(2);
  for (const uint32_t vocab : {31u, 257u, 6000u}) {
    for (uint32_t kind = 0; kind < 48; ++kind) {
      SampleCase c{vocab, random.integers(size_t{vocab} * 3, kind % 3), {}};
      c.settings = settings_of(kind, random);
      check(c);
      // All equal, and -0 beside 0.
      c.logits.assign(vocab, 0.0f);
      for (uint32_t id = 0; id < vocab; id += 3) c.logits[id] = -0.0f;
      check(c);
    }
  }
}

// Rows of a tree: the path counts as text, and each depth draws with numbers of its own.
TEST_P(SampleTest, CountsThePathToARow) {
  Random random(3);
  const uint32_t vocab = 40, width = 70;
  for (uint32_t kind = 0; kind < 24; ++kind) {
    SampleCase c{vocab, peaked(random, size_t{vocab} * width, 3), {}};
    c.settings = settings_of(kind, random);
    c.settings.frequency_penalty = 0.75f;
    c.settings.logit_bias = {{11, 1.5f}};
    for (int i = 0; i < 30; ++i) c.text.push_back(random.below(15));
    c.rows.push_back({c.text.back(), kNoToken});
    for (uint32_t row = 1; row < width; ++row) {
      const uint32_t token = random.below(vocab);
      const uint32_t back = 1 + (row * 7 + kind) % 3;  // as deep as 64 in one case
      c.rows.push_back({token, kind == 0 ? std::min(row - 1, 63u) : row - std::min(row, back)});
    }
    check(c);
    c.first_row = 50;  // the last rows only
    c.logits.resize(size_t{vocab} * 20);
    check(c);
  }
}

TEST_P(SampleTest, LeavesBannedTokensOut) {
  Random random(4);
  for (uint32_t kind = 0; kind < 48; ++kind) {
    SampleCase c{3000, peaked(random, 3000 * 2, 5), settings_of(kind, random)};
    for (uint32_t id = 0; id < 6000; ++id) {
      if (id % 7 != kind % 7) c.logits[id] = -infinity;
    }
    check(c);
  }
}

// No token: all banned, NaN of either sign or +inf somewhere, also where it is adjusted, overflow under penalties.
TEST_P(SampleTest, TellsOfRowsWithoutAToken) {
  Random random(5);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (uint32_t kind = 0; kind < 24; ++kind) {
    SampleCase c{2000, peaked(random, 2000 * 6, 5), settings_of(kind, random)};
    c.text = {5, 7};
    c.logits[1999] = nan;
    c.logits[2000 + 5] = -nan;
    c.logits[4000 + 1024] = infinity;
    std::fill_n(c.logits.begin() + 6000, 2000, -infinity);
    c.logits[8000 + 7] = infinity;
    check(c);
    c.settings.repetition_penalty = 1e-30f;
    c.logits.assign(2000, 1e30f);
    check(c);
  }
}

TEST_P(SampleTest, DrawsNothingAfterRowsThatPadAPass) {
  Random random(7);
  for (uint32_t kind = 0; kind < 8; ++kind) {
    SampleCase c{3000, peaked(random, 3000 * 5, 5), settings_of(kind, random)};
    c.rows.resize(5);
    c.rows[3].token = c.rows[4].token = kNoToken;
    for (int i = 0; i < 20; ++i) c.text.push_back(random.below(2000));
    c.settings.frequency_penalty = 0.25f;  // which their logits are spared too
    check(c);
  }
}

TEST_P(SampleTest, TakesLogitsOfAllMagnitudes) {
  Random random(6);
  for (uint32_t kind = 0; kind < 48; ++kind) {
    SampleCase c{1500, random.values(1500 * 2), settings_of(kind, random)};
    for (size_t i = 0; i < c.logits.size(); ++i) {
      c.logits[i] = std::ldexp(c.logits[i], static_cast<int>(i * 37 % 270) - 145);
    }
    check(c);
    for (float& x : c.logits) x = std::ldexp(x, -120);  // denormal ones
    check(c);
  }
}

TEST_P(SampleTest, RefusesWhatItCannotDo) {
  OpBench bench(device());
  const SampleArgs nothing{.width = 0, .vocab = 10};
  EXPECT_THROW(bench.run([&](Recorder& r) { r(nothing); }), Error);
}

CANOPY_OP_TESTS(SampleTest);

}  // namespace
}  // namespace canopy::test
