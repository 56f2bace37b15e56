// The numeric contract of the ops of mixtures of experts and of recurrences. contract_test.cpp instantiates the suite.

#include "tests/compute/contract_rows.h"
#include "tests/compute/expert_data.h"

namespace canopy::test {
namespace {

TEST_P(ContractTest, Route) {
  Random random(13);
  const uint32_t cols = 290;
  for (const bool of_chosen : {true, false}) {
    const ExpertCounts experts{21, 5, !of_chosen};
    const uint32_t all = experts.router_rows(), used = experts.used, row_shares = experts.row_shares();
    const std::vector<float> inputs = random.values(size_t{pool} * cols), router = random.values(size_t{all} * cols),
                             biases = random.values(all);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      Buffer* logits = bench.output(uint64_t{width} * all);
      Buffer* chosen = bench.output(uint64_t{width} * used);
      Buffer* shares = bench.output(uint64_t{width} * row_shares);
      bench.run([&](Recorder& r) {
        r(RouteArgs{.width = width,
                    .experts = experts,
                    .router = bench.buffer(router),
                    .in = bench.activations(width, cols, gather(inputs, cols, rows)),
                    .norm_eps = 1e-5f,
                    .of_chosen = of_chosen,
                    .logits = logits,
                    .chosen = chosen,
                    .shares = shares,
                    .bias = of_chosen ? bench.buffer(biases) : nullptr,
                    .scales = of_chosen ? bench.buffer(biases) : nullptr});
      });
      return Results{trimmed(bench.result("logits", logits, exact), size_t{width} * all),
                     trimmed(bench.integers("chosen", chosen), size_t{width} * used),
                     trimmed(bench.result("shares", shares, exact), size_t{width} * row_shares)};
    });
  }
}

// Rows that have chosen the same experts and others are in every pass: which of them are computed together must not
// show. A type of each kind in which kernels read weights (dense, blocks without and with a minimum, words, tables):
// all would take minutes on the made-up GPU.
TEST_P(ContractTest, Experts) {
  constexpr WeightType kinds[] = {WeightType::f16, WeightType::q8_0, WeightType::q4_1, WeightType::q5_1,
                                  WeightType::mxfp4};
  for (const WeightType type : weight_types_under_test()) {
    if (std::ranges::find(kinds, type) == std::end(kinds)) continue;
    SCOPED_TRACE(to_string(type));
    Random random(14);
    const ExpertCounts experts{6, 2, type == WeightType::q8_0};
    const uint32_t ffn = 32, hidden = 320, used = experts.used, row_shares = experts.row_shares();
    const ExpertMatrices matrices(random, type, experts, ffn, hidden);
    const std::vector<uint32_t> choice = random_choice(random, experts, pool, false);
    std::vector<float> choices(choice.size());  // as numbers, to be gathered like values
    std::copy(choice.begin(), choice.end(), choices.begin());
    const std::vector<float> inputs = random.values(size_t{pool} * hidden),
                             shares = random.values(size_t{pool} * row_shares),
                             residuals = random.values(size_t{pool} * hidden), norm = random.values(hidden),
                             of_shared = random.values(size_t{pool} * hidden);
    const bool clamped = type == WeightType::mxfp4;  // as in gpt-oss: with biases, too
    const std::vector<float> gate_up_bias = random.values(size_t{experts.all} * 2 * ffn),
                             down_bias = random.values(size_t{experts.all} * hidden);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      const ExpertMatrices::Weights weights = matrices.on(bench);
      const std::vector<float> gathered = gather(choices, used, rows);
      const Buffer* chosen = bench.buffer(std::vector<uint32_t>(gathered.begin(), gathered.end()));
      const Activations* in = bench.activations(width, hidden, gather(inputs, hidden, rows));
      Activations* gated = bench.output_activations(width * used, ffn);
      Buffer* x = bench.buffer(gather(residuals, hidden, rows));
      Activations* out = bench.output_activations(width, hidden);
      bench.run([&](Recorder& r) {
        r(ExpertSwigluArgs{width, experts, weights.gate_up, in, 1e-5f, chosen, gated,
                           clamped ? bench.buffer(gate_up_bias) : nullptr, clamped ? 0.75f : 0.0f,
                           type == WeightType::q4_1 ? GateFunction::gelu : GateFunction::silu});
        r(ExpertAddArgs{.width = width,
                        .experts = experts,
                        .weight = weights.down,
                        .in = gated,
                        .chosen = chosen,
                        .shares = bench.buffer(gather(shares, row_shares, rows)),
                        .shared = experts.shared ? bench.buffer(gather(of_shared, hidden, rows)) : nullptr,
                        .products = bench.output(uint64_t{width} * used * hidden),
                        .x = x,
                        .norm = {bench.buffer(norm)},
                        .out = out,
                        .bias = clamped ? bench.buffer(down_bias) : nullptr});
      });
      return Results{bench.result("gated", gated, width * used, exact),
                     trimmed(bench.result("x", x, exact), size_t{width} * hidden),
                     bench.result("out", out, width, exact), trimmed(bench.norm_probe(out, width), size_t{width} * 4)};
    });
  }
}

TEST_P(ContractTest, GatedNorm) {
  Random random(13);
  const uint32_t heads = 3, head_dim = 50, cols = heads * head_dim;
  const std::vector<float> inputs = random.values(size_t{pool} * cols), gates = random.values(size_t{pool} * cols);
  const std::vector<float> norm = random.values(cols);
  for (const bool within : {false, true}) {
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      const GatedNormArgs args{.width = width,
                               .heads = heads,
                               .head_dim = head_dim,
                               .in = bench.buffer(gather(inputs, cols, rows)),
                               .gate = bench.buffer(gather(gates, cols, rows)),
                               .weight = bench.buffer(norm),
                               .eps = 1e-6f,
                               .out = bench.output_activations(width, cols),
                               .gate_within = within};
      bench.run([&](Recorder& r) { r(args); });
      return Results{bench.result("out", args.out, width, exact)};
    });
  }
}

TEST_P(ContractTest, Gate) {
  Random random(14);
  const uint32_t cols = 130;
  const std::vector<float> inputs = random.values(size_t{pool} * cols), gates = random.values(size_t{pool} * cols);
  expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(rows.size());
    const Buffer* in = bench.buffer(gather(inputs, cols, rows));
    Activations* x = bench.output_activations(width, cols);
    const Buffer* gate = bench.buffer(gather(gates, cols, rows));
    bench.run([&](Recorder& r) {
      r(NormRowsArgs{width, in, {nullptr}, x});
      r(GateArgs{width, gate, x});
    });
    return Results{bench.result("x", x, width, exact)};
  });
}

TEST_P(ContractTest, SquareRelu) {
  Random random(16);
  const uint32_t cols = 130;
  const std::vector<float> inputs = random.values(size_t{pool} * cols);
  expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(rows.size());
    Activations* out = bench.output_activations(width, cols);
    const Buffer* in = bench.buffer(gather(inputs, cols, rows));
    bench.run([&](Recorder& r) { r(SquareReluArgs{width, in, out}); });
    return Results{bench.result("out", out, width, exact)};
  });
}

TEST_P(ContractTest, GateInputs) {
  Random random(15);
  const uint32_t cols = 130, stride = 270, offset = 135;
  const std::vector<float> gates = random.values(size_t{pool} * cols), inputs = random.values(size_t{pool} * stride);
  expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(rows.size());
    const Buffer* gate = bench.buffer(gather(gates, cols, rows));
    const Buffer* in = bench.buffer(gather(inputs, stride, rows));
    Activations* out = bench.output_activations(width, cols);
    bench.run([&](Recorder& r) { r(GateInputsArgs{width, gate, 3, in, stride, offset, out}); });
    return Results{bench.result("out", out, width, exact)};
  });
}

}  // namespace
}  // namespace canopy::test
