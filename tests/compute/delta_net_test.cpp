#include <numeric>

#include "tests/compute/delta_case.h"

namespace canopy::test {
namespace {

std::string name_of(const DeltaPass& pass) {
  return describe(pass.shape) + ", width " + std::to_string(pass.width()) + (pass.keeps ? ", kept" : "");
}

class DeltaNetTest : public OpTest {
 protected:
  void compare_pass(const DeltaPass& pass) {
    SCOPED_TRACE(name_of(pass));
    const DeltaNumbers numbers(pass.shape, pass.width(), pass.width());
    compare([&](Device& device) { return DeltaRun(device, pass, numbers).results(); });
  }
};

TEST_P(DeltaNetTest, Lines) {
  for (const DeltaShape& shape :
       {kTinyDelta, kOddDelta, kWholeDelta, kThinDelta, kTinyScan, kOddScan, kWholeScan, kThinScan}) {
    for (const uint32_t width : {1u, 2u, 3u, 5u, 33u}) {
      for (const bool keeps : {false, true}) compare_pass({shape, random_parents(width, 1, 0), keeps});
    }
  }
}

TEST_P(DeltaNetTest, Trees) {
  for (const DeltaShape& shape : {kTinyDelta, kOddDelta, kOddScan}) {
    for (const uint32_t width : {2u, 7u, 40u, 65u}) {
      for (const uint32_t near : {2u, 9u, 1000u}) compare_pass({shape, random_parents(width, near, width), true});
    }
  }
}

// Several rows behind the text itself.
TEST_P(DeltaNetTest, SeveralRowsFollowTheText) {
  for (const DeltaShape& shape : {kTinyDelta, kTinyScan}) compare_pass({shape, {-1, -1, 0, 1, -1, 4, 4}, true});
}

// Steps that do nothing stand among the others, and rows without a step stay as they are.
TEST_P(DeltaNetTest, StepsThatFillAPassChangeNothing) {
  const DeltaPass pass{kTinyDelta, {-1, 0, 1, 1, 3}, true};
  const DeltaNumbers numbers(pass.shape, pass.width(), 3);
  compare([&](Device& device) {
    DeltaRun run(device, pass, numbers);
    std::vector<DeltaStep> steps = pass.steps();
    steps.resize(16);
    run.inputs.width = run.net.width = 16;
    run.inputs.steps = run.net.steps = run.bench.buffer(steps);
    return run.results();
  });
}

// Of a list of few steps over rows of a wide pass, as accepted rows are applied: nothing is read, states are the same.
TEST_P(DeltaNetTest, AppliesRowsWithoutReadingThem) {
  for (const DeltaShape& shape : {kOddDelta, kOddScan}) {
    const DeltaPass pass{shape, random_parents(20, 4, 8), false};
    const DeltaNumbers numbers(pass.shape, pass.width(), 4);
    compare([&](Device& device) {
      DeltaRun run(device, pass, numbers);
      std::vector<DeltaStep> steps;
      for (const uint32_t at : pass.path_to(19)) {
        const auto count = static_cast<uint32_t>(steps.size());
        steps.push_back({pass.row_of(at), count == 0 ? DeltaStep::kNone : count - 1,
                         count == 0 ? DeltaPass::kText : DeltaStep::kNone, DeltaStep::kNone});
      }
      steps.back().to = DeltaPass::kResult;
      run.inputs.width = run.net.width = static_cast<uint32_t>(steps.size());
      run.inputs.steps = run.net.steps = run.bench.buffer(steps);
      Buffer* const unread = std::exchange(run.net.out, nullptr);
      run.bench.run([&](Recorder& r) {
        r(run.inputs);
        r(run.net);
      });
      return Results{run.bench.result("tails", run.inputs.tails, exact),
                     run.bench.result("states", run.net.states, f32_exp), run.bench.result("unread", unread, exact)};
    });
  }
}

// Decays and gates at the ends of their ranges: nothing kept, all kept, nothing taken.
TEST_P(DeltaNetTest, GatesAtTheEndsOfTheirRanges) {
  const DeltaPass pass{kTinyDelta, random_parents(6, 1, 0), true};
  DeltaNumbers numbers(pass.shape, pass.width(), 5);
  const size_t size = pass.shape.row_elements(), channels = pass.shape.channels(), heads = pass.shape.value_heads;
  constexpr float ends[] = {-200, -30, 0, 19.99f, 20.01f, 200};
  for (size_t w = 0; w < pass.width(); ++w) {
    for (size_t h = 0; h < heads; ++h) {
      numbers.rows[w * size + channels + h] = ends[(w + h) % 6];
      numbers.rows[w * size + channels + heads + h] = ends[(w + 2 * h) % 6];
    }
    for (size_t c = 0; c < channels; c += 3) numbers.rows[w * size + c] *= 100;  // silu of large numbers
  }
  compare([&](Device& device) { return DeltaRun(device, pass, numbers).results(); });
}

// Of a scan: steps from far below the smallest that counts to large ones.
TEST_P(DeltaNetTest, StepsOfScansAtTheEndsOfTheirRange) {
  const DeltaPass pass{kTinyScan, random_parents(6, 1, 0), true};
  DeltaNumbers numbers(pass.shape, pass.width(), 5);
  const size_t size = pass.shape.row_elements(), channels = pass.shape.channels(), heads = pass.shape.value_heads;
  constexpr float ends[] = {-200, -30, -8, 19.99f, 20.01f, 200};
  for (size_t w = 0; w < pass.width(); ++w) {
    for (size_t h = 0; h < heads; ++h) numbers.rows[w * size + channels + h] = ends[(w + h) % 6];
  }
  compare([&](Device& device) { return DeltaRun(device, pass, numbers).results(); });
}

// Convolutions of either kind with and without a bias.
TEST_P(DeltaNetTest, ConvolutionsMayHaveABias) {
  for (const DeltaShape& shape : {kTinyDelta, kTinyScan}) {
    const DeltaPass pass{shape, random_parents(5, 2, 1), true};
    const DeltaNumbers numbers(pass.shape, pass.width(), 6);
    compare([&](Device& device) {
      DeltaRun run(device, pass, numbers);
      run.inputs.conv_bias =
          shape.corrects
              ? run.bench.buffer(std::vector<float>(numbers.taps.begin(), numbers.taps.begin() + shape.channels()))
              : nullptr;
      return run.results();
    });
  }
}

/// The results of one row, and the state behind it: [values], [state], [tail].
struct RowBits {
  std::vector<uint32_t> out, state, tail;
  friend bool operator==(const RowBits&, const RowBits&) = default;
};

/// The rows of a path one by one, each by ops of its own, with the state kept after each, in turns at two places.
RowBits one_by_one(Device& device, const DeltaPass& pass, const DeltaNumbers& numbers, uint32_t step) {
  DeltaRun run(device, pass, numbers);
  const std::vector<uint32_t> path = pass.path_to(step);
  uint32_t from = DeltaPass::kText, to = DeltaPass::kText;
  run.bench.run([&](Recorder& r) {
    for (size_t i = 0; i < path.size(); ++i, from = to) {
      to = i % 2 == 0 ? 3 : 2;
      run.inputs.width = run.net.width = 1;
      run.inputs.steps = run.net.steps =
          run.bench.buffer(std::vector<DeltaStep>{{pass.row_of(path[i]), DeltaStep::kNone, from, to}});
      r(run.inputs);
      r(run.net);
    }
  });
  const auto part = [](const Result& whole, size_t size, size_t index) {
    const auto first = whole.words.begin() + static_cast<std::ptrdiff_t>(size * index);
    return std::vector<uint32_t>(first, first + static_cast<std::ptrdiff_t>(size));
  };
  return {part(run.bench.result("out", run.net.out, exact), pass.shape.values(), pass.row_of(step)),
          part(run.bench.result("states", run.net.states, exact), pass.shape.state_elements(), to),
          part(run.bench.result("tails", run.inputs.tails, exact), pass.shape.tail_elements(), to)};
}

// The numeric contract: whatever the width and the tree, a row's results and the state behind it have the bits that
// they have when each row of its path is computed alone.
TEST_P(DeltaNetTest, RowsOfAnyPassEqualThoseComputedOneByOne) {
  for (const DeltaShape& shape : {kTinyDelta, kOddDelta, kOddScan}) {
    for (const uint32_t width : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 16u, 31u, 33u, 64u, 65u, 129u, 257u}) {
      const uint32_t near = width % 3 == 0 ? 1 : 1 + width / 3;
      DeltaPass pass{shape, random_parents(width, near, width), true};
      const DeltaNumbers numbers(shape, width, width + 1);
      const Results together = DeltaRun(device(), pass, numbers).results();
      std::vector<uint32_t> wanted = {0, width / 2, width - 1};
      for (const uint32_t step : wanted) {
        SCOPED_TRACE(name_of(pass) + ", step " + std::to_string(step));
        const RowBits alone = one_by_one(device(), pass, numbers, step);
        const auto out = together[2].words.begin() + static_cast<std::ptrdiff_t>(pass.row_of(step) * shape.values());
        ASSERT_TRUE(std::equal(alone.out.begin(), alone.out.end(), out)) << "results differ";
        if (step != width - 1) continue;
        const auto state =
            together[3].words.begin() + static_cast<std::ptrdiff_t>(DeltaPass::kResult * shape.state_elements());
        ASSERT_TRUE(std::equal(alone.state.begin(), alone.state.end(), state)) << "states differ";
        const auto tail =
            together[1].words.begin() + static_cast<std::ptrdiff_t>(DeltaPass::kResult * shape.tail_elements());
        ASSERT_TRUE(std::equal(alone.tail.begin(), alone.tail.end(), tail)) << "tails differ";
      }
    }
  }
}

TEST_P(DeltaNetTest, RefusesShapesWithoutAKernel) {
  const auto expect_refused = [&](DeltaShape shape) {
    const DeltaPass pass{kTinyDelta, {-1}, false};
    DeltaRun run(device(), pass, DeltaNumbers(pass.shape, 1, 1));
    run.net.shape = run.inputs.shape = shape;
    EXPECT_ANY_THROW(run.bench.run([&](Recorder& r) { r(run.net); })) << describe(shape);
    EXPECT_ANY_THROW(run.bench.run([&](Recorder& r) { r(run.inputs); })) << describe(shape);
  };
  expect_refused({2, 3, 16, 16, 4, false});   // value heads are no multiple of the key heads
  expect_refused({2, 4, 132, 16, 4, false});  // more than a column's registers
  expect_refused({2, 4, 18, 16, 4, false});   // no multiple of 4
  expect_refused({2, 4, 16, 16, 1, false});   // no row before
}

TEST_P(DeltaNetTest, RefusesSkipsOfDeltaNetsAndScansWithout) {
  for (const DeltaShape& shape : {kTinyDelta, kTinyScan}) {
    const DeltaPass pass{shape, {-1}, false};
    DeltaRun run(device(), pass, DeltaNumbers(pass.shape, 1, 1));
    run.net.skip = shape.corrects ? run.inputs.bias : nullptr;
    EXPECT_ANY_THROW(run.bench.run([&](Recorder& r) { r(run.net); })) << describe(shape);
  }
}

CANOPY_OP_TESTS(DeltaNetTest);

}  // namespace
}  // namespace canopy::test
