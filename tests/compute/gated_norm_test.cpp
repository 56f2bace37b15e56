#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct GatedNormCase {
  uint32_t width, heads, head_dim;
  bool within = false;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width + head_dim);
    const size_t elements = size_t{width} * heads * head_dim;
    std::vector<float> gates = random.values(elements);
    for (float& gate : gates) gate *= 10;
    GatedNormArgs args;
    args.width = width;
    args.heads = heads;
    args.head_dim = head_dim;
    args.in = bench.buffer(random.values(elements));
    args.gate = bench.buffer(gates);
    args.gate_within = within;
    args.weight = bench.buffer(random.values(args.weights()));
    args.eps = 1e-6f;
    args.out = bench.output_activations(width, heads * head_dim);
    bench.run([&](Recorder& r) { r(args); });
    return {bench.result("out", args.out, width, f32_exp)};
  }
};

class GatedNormTest : public OpTest {};

TEST_P(GatedNormTest, NormsHeadsAndGatesThem) {
  for (const uint32_t head_dim : {4u, 16u, 30u, 33u, 128u}) {
    for (const uint32_t width : {1u, 3u, 65u}) {
      SCOPED_TRACE("heads of " + std::to_string(head_dim) + ", width " + std::to_string(width));
      compare(GatedNormCase{width, 3, head_dim});
    }
  }
}

TEST_P(GatedNormTest, NormsWhatIsGated) {
  for (const uint32_t head_dim : {4u, 30u, 33u, 1500u}) {
    for (const uint32_t heads : {1u, 3u}) {
      SCOPED_TRACE(std::to_string(heads) + " heads of " + std::to_string(head_dim));
      compare(GatedNormCase{5, heads, head_dim, true});
    }
  }
}

// Gates far from 0, and a head of zeros, which stays zeros.
TEST_P(GatedNormTest, EndsOfTheRange) {
  for (const bool within : {false, true}) {
    compare([within](Device& device) {
      OpBench bench(device);
      GatedNormArgs args;
      args.width = 1;
      args.heads = 2;
      args.head_dim = 4;
      args.in = bench.buffer(std::vector<float>{0, 0, 0, 0, 1, -2, 3, -4});
      args.gate = bench.buffer(std::vector<float>{1, 2, 3, 4, -200, 200, 0, -50});
      args.gate_within = within;
      args.weight = bench.buffer(within ? std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8} : std::vector<float>{1, 2, 3, 4});
      args.eps = 1e-6f;
      args.out = bench.output_activations(1, 8);
      bench.run([&](Recorder& r) { r(args); });
      return Results{bench.result("out", args.out, 1, f32_exp)};
    });
  }
}

CANOPY_OP_TESTS(GatedNormTest);

}  // namespace
}  // namespace canopy::test
