#include <algorithm>

#include "engine/compute/rows.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct EmbedCase {
  WeightType type;
  uint32_t vocab;
  uint32_t cols;
  uint32_t width;
  float scale = 1;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(vocab + cols + width);
    const Weight* table = bench.weight(random.matrix(type, vocab, cols));
    RowBatch batch;
    for (uint32_t w = 0; w < width; ++w) batch.add_text(w == 0 ? vocab - 1 : random.below(vocab), w);
    const Buffer* norm = bench.buffer(random.values(cols));
    const Buffer* rows = bench.buffer(batch.rows);
    Buffer* x = bench.output(uint64_t{width} * cols);
    Activations* out = bench.output_activations(width, cols);
    bench.run([&](Recorder& r) { r(EmbedArgs{width, table, rows, x, {norm}, out, scale}); });
    // An element of a quantized type is a product and a sum, and each may be rounded separately or not (fma).
    const bool stored_as_is = block_size(type).elements == 1;
    const Tolerance tolerance = stored_as_is ? exact : f32_rounding;
    return {bench.result("x", x, tolerance), bench.result("out", out, width, tolerance), bench.norm_probe(out, width)};
  }
};

class EmbedTest : public OpTest {};

TEST_P(EmbedTest, AgreesWithTheOracle) {
  static constexpr uint32_t widths[] = {1, 3, 8, 17, 65, 130};
  static constexpr uint32_t cols[] = {96, 32, 576, 160, 96, 64};
  for (const WeightType type : weight_types_under_test()) {
    for (size_t i = 0; i < std::size(widths); ++i) {
      const uint32_t fitting = columns_for(type, {cols[i]})[0];
      SCOPED_TRACE(std::string(to_string(type)) + " cols " + std::to_string(fitting) + ", width " +
                   std::to_string(widths[i]));
      compare(EmbedCase{type, 53, fitting, widths[i]});
    }
  }
}

TEST_P(EmbedTest, ScalesWhatItReads) {
  const std::vector<WeightType> types = weight_types_under_test();
  for (const WeightType type : {WeightType::f32, WeightType::q4_1, WeightType::q6_k}) {
    if (std::find(types.begin(), types.end(), type) == types.end()) continue;
    for (const float scale : {24.0f, 0.1f}) {
      SCOPED_TRACE(std::string(to_string(type)) + ", scale " + std::to_string(scale));
      compare(EmbedCase{type, 29, columns_for(type, {96})[0], 9, scale});
    }
  }
}

CANOPY_OP_TESTS(EmbedTest);

}  // namespace
}  // namespace canopy::test
