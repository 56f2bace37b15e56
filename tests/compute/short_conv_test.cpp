#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/expect_error.h"
#include "tests/compute/delta_case.h"

namespace canopy::test {
namespace {

/// A pass over a tree of rows; the steps are those of a delta net.
struct ConvPass {
  uint32_t cols, taps;
  std::vector<int32_t> parents;
  bool keeps = false;     // the tail after the last row, as the third
  bool integers = false;  // small ones, of which every sum is exact

  DeltaPass steps() const { return {{}, parents, keeps}; }
  uint32_t width() const { return static_cast<uint32_t>(parents.size()); }
  std::string name() const {
    return std::to_string(cols) + " columns, " + std::to_string(taps) + " taps, width " + std::to_string(width()) +
           (keeps ? ", kept" : "");
  }
};

struct ConvRun {
  OpBench bench;
  ShortConvArgs args;
  Tolerance tolerance;
  std::vector<float> rows;  // [width, 3 cols]

  ConvRun(Device& device, const ConvPass& pass) : bench(device), tolerance(pass.integers ? exact : f32_rounding) {
    Random random(pass.cols * 100 + pass.width());
    const auto values = [&](size_t count) {
      std::vector<float> result = random.values(count);
      if (pass.integers) {
        for (float& value : result) value = std::round(value * 8);
      }
      return result;
    };
    const uint32_t width = pass.width(), tail = (pass.taps - 1) * pass.cols;
    rows = values(size_t{width} * 3 * pass.cols);
    args = {.width = width,
            .rows = width,
            .cols = pass.cols,
            .taps = pass.taps,
            .in = bench.buffer(rows),
            .steps = bench.buffer(pass.steps().steps()),
            .kernel = bench.buffer(values(size_t{pass.cols} * pass.taps)),
            .tails = bench.buffer(values(size_t{DeltaPass::kKept} * tail)),
            .out = bench.output_activations(width, pass.cols)};
  }

  Results results() {
    bench.run([&](Recorder& r) { r(args); });
    return {bench.result("out", args.out, args.rows, tolerance), bench.result("tails", args.tails, exact)};
  }
};

class ShortConvTest : public OpTest {
 protected:
  void compare_pass(ConvPass pass) {
    SCOPED_TRACE(pass.name());
    for (const bool integers : {true, false}) {
      pass.integers = integers;
      compare([&](Device& device) { return ConvRun(device, pass).results(); });
    }
  }
};

TEST_P(ShortConvTest, Lines) {
  for (const uint32_t cols : {1u, 3u, 31u, 64u, 65u, 130u, 290u}) {
    for (const uint32_t taps : {2u, 3u, 4u, 8u}) {
      for (const uint32_t width : {1u, 2u, 5u, 33u}) {
        for (const bool keeps : {false, true}) compare_pass({cols, taps, random_parents(width, 1, 0), keeps});
      }
    }
  }
}

TEST_P(ShortConvTest, Trees) {
  for (const uint32_t cols : {7u, 96u}) {
    for (const uint32_t width : {2u, 7u, 40u, 65u}) {
      for (const uint32_t near : {2u, 9u, 1000u}) compare_pass({cols, 3, random_parents(width, near, width), true});
    }
  }
  compare_pass({66, 3, {-1, -1, 0, 1, -1, 4, 4}, true});  // several rows follow the text itself
}

// Steps that do nothing stand behind the others, as where a list is filled up to a width.
TEST_P(ShortConvTest, StepsThatFillAPassChangeNothing) {
  const ConvPass pass{67, 3, {-1, 0, 1, 1, 3}, true};
  compare([&](Device& device) {
    ConvRun run(device, pass);
    std::vector<DeltaStep> steps = pass.steps().steps();
    steps.resize(16);
    run.args.width = 16;
    run.args.steps = run.bench.buffer(steps);
    return run.results();
  });
}

// As accepted rows are applied: a few of a wide pass, of which nothing is read.
TEST_P(ShortConvTest, AppliesRowsWithoutReadingThem) {
  const ConvPass pass{70, 4, random_parents(20, 4, 8), false};
  compare([&](Device& device) {
    ConvRun run(device, pass);
    std::vector<DeltaStep> steps;
    for (const uint32_t at : pass.steps().path_to(19)) {
      const auto count = static_cast<uint32_t>(steps.size());
      steps.push_back({pass.steps().row_of(at), count == 0 ? DeltaStep::kNone : count - 1,
                       count == 0 ? DeltaPass::kText : DeltaStep::kNone, DeltaStep::kNone});
    }
    steps.back().to = DeltaPass::kResult;
    run.args.width = static_cast<uint32_t>(steps.size());
    run.args.steps = run.bench.buffer(steps);
    run.args.out = nullptr;
    run.bench.run([&](Recorder& r) { r(run.args); });
    return Results{run.bench.result("tails", run.args.tails, exact)};
  });
}

// Rows of a narrow pass in memory for a wide one: the results are those of activations as wide as the pass.
TEST_P(ShortConvTest, APassMayBeNarrowerThanItsMemory) {
  const ConvPass pass{70, 3, random_parents(20, 1, 0), false};
  compare([&](Device& device) {
    ConvRun run(device, pass);
    run.args.width = 3;
    run.args.steps = run.bench.buffer(std::vector<DeltaStep>{{0, DeltaStep::kNone, DeltaPass::kText, DeltaStep::kNone},
                                                             {1, 0, DeltaStep::kNone, DeltaStep::kNone},
                                                             {2, 1, DeltaStep::kNone, DeltaPass::kResult}});
    run.bench.run([&](Recorder& r) { r(run.args); });
    return Results{run.bench.result("out", run.args.out, 3, f32_rounding),
                   run.bench.result("tails", run.args.tails, exact)};
  });
}

// A tail that takes the place of the one it comes from, by fewer rows than it has.
TEST_P(ShortConvTest, ATailMayTakeThePlaceOfTheOneBefore) {
  const ConvPass pass{65, 5, {-1, 0}, false};
  compare([&](Device& device) {
    ConvRun run(device, pass);
    Activations* const out = std::exchange(run.args.out, nullptr);
    run.args.steps = run.bench.buffer(std::vector<DeltaStep>{{1, DeltaStep::kNone, DeltaPass::kText, DeltaStep::kNone},
                                                             {0, 0, DeltaStep::kNone, DeltaPass::kResult}});
    run.bench.run([&](Recorder& r) { r(run.args); });
    run.args.width = 1;
    run.args.out = out;
    run.args.steps =
        run.bench.buffer(std::vector<DeltaStep>{{0, DeltaStep::kNone, DeltaPass::kResult, DeltaPass::kResult}});
    run.bench.run([&](Recorder& r) { r(run.args); });
    return Results{run.bench.result("out", run.args.out, 1, f32_rounding),
                   run.bench.result("tails", run.args.tails, exact)};
  });
}

/// A row's results and the tail behind it where each row of its path is computed by an op of its own.
std::pair<std::vector<uint32_t>, std::vector<uint32_t>> convolved_one_by_one(Device& device, const ConvPass& pass,
                                                                             uint32_t step) {
  ConvRun run(device, pass);
  uint32_t from = DeltaPass::kText, to = DeltaPass::kText;
  const std::vector<uint32_t> path = pass.steps().path_to(step);
  run.bench.run([&](Recorder& r) {
    for (size_t i = 0; i < path.size(); ++i, from = to) {
      to = i % 2 == 0 ? 3 : 2;
      const auto row = std::span(run.rows).subspan(size_t{pass.steps().row_of(path[i])} * 3 * pass.cols, 3 * pass.cols);
      run.args.in = run.bench.buffer(std::vector<float>(row.begin(), row.end()));
      run.args.width = run.args.rows = 1;
      run.args.steps = run.bench.buffer(std::vector<DeltaStep>{{0, DeltaStep::kNone, from, to}});
      r(run.args);
    }
  });
  const std::vector<uint32_t> out = run.bench.result("out", run.args.out, 1, exact).words;
  const std::vector<uint32_t> tails = run.bench.result("tails", run.args.tails, exact).words;
  const auto part = [](const std::vector<uint32_t>& all, size_t size, size_t index) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(size * index);
    return std::vector<uint32_t>(first, first + static_cast<std::ptrdiff_t>(size));
  };
  return {part(out, pass.cols, 0), part(tails, size_t{pass.taps - 1} * pass.cols, to)};
}

// The numeric contract: whatever the width and the tree, a row's results and the tail behind it have the bits that they
// have when each row of its path is computed alone.
TEST_P(ShortConvTest, RowsOfAnyPassEqualThoseComputedOneByOne) {
  for (const uint32_t cols : {33u, 130u}) {
    for (const uint32_t width : {1u, 2u, 3u, 5u, 8u, 9u, 31u, 33u, 64u, 65u, 129u, 257u}) {
      const uint32_t near = width % 3 == 0 ? 1 : 1 + width / 3;
      const ConvPass pass{cols, 3, random_parents(width, near, width), true};
      const Results together = ConvRun(device(), pass).results();
      for (const uint32_t step : {0u, width / 2, width - 1}) {
        SCOPED_TRACE(pass.name() + ", step " + std::to_string(step));
        const auto [out, tail] = convolved_one_by_one(device(), pass, step);
        ASSERT_TRUE(std::equal(out.begin(), out.end(),
                               together[0].words.begin() + std::ptrdiff_t{pass.steps().row_of(step)} * cols))
            << "results differ";
        if (step != width - 1) continue;
        ASSERT_TRUE(std::equal(tail.begin(), tail.end(),
                               together[1].words.begin() + std::ptrdiff_t{DeltaPass::kResult} * 2 * cols))
            << "tails differ";
      }
    }
  }
}

TEST_P(ShortConvTest, RefusesWhatHasNoKernel) {
  const auto refused = [&](const std::function<void(ShortConvArgs&)>& change) {
    ConvRun run(device(), {4, 3, {-1}});
    change(run.args);
    expect_error("short_conv has", [&] { run.bench.run([&](Recorder& r) { r(run.args); }); });
  };
  refused([](ShortConvArgs& args) { args.taps = 1; });
  refused([](ShortConvArgs& args) { args.taps = 9; });
  refused([](ShortConvArgs& args) { args.cols = 0; });
  refused([](ShortConvArgs& args) { args.width = 0; });
}

CANOPY_OP_TESTS(ShortConvTest);

}  // namespace
}  // namespace canopy::test
