#pragma once
// Passes of a recurrence over trees of random rows.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/compute/op_test.h"

namespace canopy::test {

/// Row i of a pass follows row parents[i], or the text where that is -1. Row i is the i-th step, so that a state waits
/// wherever a child does not come next; the rows' places in the buffers are in another order.
struct DeltaPass {
  static constexpr uint32_t kKept = 4;  // states; the text's is the second
  static constexpr uint32_t kText = 1, kResult = 2;

  DeltaShape shape;
  std::vector<int32_t> parents;
  bool keeps = false;  // the state after the last row, as the third

  uint32_t width() const { return static_cast<uint32_t>(parents.size()); }
  uint32_t row_of(uint32_t step) const { return width() - 1 - step; }

  std::vector<DeltaStep> steps() const {
    std::vector<DeltaStep> steps(width());
    for (uint32_t i = 0; i < width(); ++i) {
      const auto parent = static_cast<uint32_t>(parents[i]);
      steps[i].row = row_of(i);
      if (parents[i] < 0) {
        steps[i].from = kText;
        continue;
      }
      steps[i].parent = parent;
      if (parent + 1 == i) continue;
      steps[i].from = DeltaStep::kSpare | parent;
      steps[parent].to = DeltaStep::kSpare | parent;
    }
    if (keeps) steps.back().to = kResult;
    return steps;
  }

  /// Steps from the text to a row.
  std::vector<uint32_t> path_to(uint32_t step) const {
    std::vector<uint32_t> path;
    for (auto at = static_cast<int32_t>(step); at >= 0; at = parents[static_cast<size_t>(at)]) {
      path.insert(path.begin(), static_cast<uint32_t>(at));
    }
    return path;
  }
};

/// Numbers of a usual size: inputs around 1, states too, decays of all strengths.
struct DeltaNumbers {
  std::vector<float> rows;  // [width, row_elements]
  std::vector<float> taps, bias, rate, states, tails;
  std::vector<float> conv_bias, skip;  // of scans

  DeltaNumbers(const DeltaShape& shape, uint32_t width, uint32_t seed) {
    Random random(seed);
    rows = random.values(size_t{width} * shape.row_elements());
    for (float& x : rows) x *= 3;
    taps = random.values(size_t{shape.channels()} * shape.taps);
    bias = random.values(shape.value_heads);
    rate = random.values(shape.value_heads);
    for (float& x : rate) x = -0.01f - 2 * (x + 1);
    states = random.values(DeltaPass::kKept * shape.state_elements());
    tails = random.values(DeltaPass::kKept * shape.tail_elements());
    if (shape.corrects) return;
    conv_bias = random.values(shape.channels());
    skip = random.values(shape.value_heads);
    const size_t size = shape.row_elements(), used = size_t{shape.channels()} + shape.head_inputs();
    for (size_t w = 0; w < width; ++w) {  // what a scan has no number for must not be read
      for (size_t i = used; i < size; ++i) rows[w * size + i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
};

/// The buffers of a pass on a device.
struct DeltaRun {
  OpBench bench;
  DeltaInputsArgs inputs;
  DeltaNetArgs net;

  DeltaRun(Device& device, const DeltaPass& pass, const DeltaNumbers& numbers) : bench(device) {
    const DeltaShape& shape = pass.shape;
    const uint32_t width = pass.width();
    inputs = {.width = width,
              .rows = width,
              .in = bench.buffer(numbers.rows),
              .steps = bench.buffer(pass.steps()),
              .shape = shape,
              .taps = bench.buffer(numbers.taps),
              .bias = bench.buffer(numbers.bias),
              .rate = bench.buffer(numbers.rate),
              .tails = bench.buffer(numbers.tails),
              .out = bench.output(uint64_t{width} * shape.row_elements()),
              .conv_bias = shape.corrects ? nullptr : bench.buffer(numbers.conv_bias)};
    net = {.width = width,
           .rows = width,
           .in = inputs.out,
           .steps = inputs.steps,
           .shape = shape,
           .states = bench.buffer(numbers.states),
           .spare = bench.output(width * shape.state_elements()),
           .out = bench.output(uint64_t{width} * shape.values()),
           .skip = shape.corrects ? nullptr : bench.buffer(numbers.skip)};
  }

  Results results() {
    bench.run([&](Recorder& r) {
      r(inputs);
      r(net);
    });
    return {bench.result("prepared", inputs.out, f32_exp), bench.result("tails", inputs.tails, exact),
            bench.result("out", net.out, f32_exp), bench.result("states", net.states, f32_exp),
            bench.result("put aside", net.spare, f32_exp)};
  }
};

/// A tree in which row i follows one of the `near` rows before it.
inline std::vector<int32_t> random_parents(uint32_t width, uint32_t near, uint32_t seed) {
  Random random(seed);
  std::vector<int32_t> parents = {-1};
  for (uint32_t i = 1; i < width; ++i) {
    parents.push_back(static_cast<int32_t>(i - 1 - random.below(std::min(near, i))));
  }
  return parents;
}

inline const DeltaShape kTinyDelta{2, 4, 16, 16, 4, false}, kOddDelta{3, 9, 12, 44, 3, true},
    kWholeDelta{1, 2, 128, 128, 4, false}, kThinDelta{1, 1, 4, 4, 2, true};
inline const DeltaShape kTinyScan{2, 4, 16, 16, 4, false, false}, kOddScan{3, 9, 12, 44, 3, false, false},
    kWholeScan{1, 3, 128, 64, 4, false, false}, kThinScan{1, 1, 4, 4, 2, true, false};

}  // namespace canopy::test
