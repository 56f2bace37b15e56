// x[w] = scale * table[rows[w].token]
// out[w] = x[w] * norm.weight, with the sum of squares of x[w]

#include "engine/compute/rows.h"
#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const EmbedArgs& args) {
  const HostWeight& table = host_weight(args.table, "embed: table");
  const uint32_t cols = table.cols();
  const auto rows = elements<Row>(args.rows, args.width, "embed: rows");
  const auto norm = elements<float>(args.norm.weight, cols, "embed: norm weight");
  const auto x = elements<float>(args.x, uint64_t{args.width} * cols, "embed: x");
  HostActivations& out = written_activations(args.out, args.width, cols, "embed: out");

  for (uint32_t w = 0; w < args.width; ++w) {
    require(rows[w].token < table.rows(), "embed: a token lies outside the table.");
    const float* from = table.row(rows[w].token);
    float* residual = x.data() + size_t{w} * cols;
    for (uint32_t c = 0; c < cols; ++c) {
      residual[c] = args.scale * from[c];
      out.row(w)[c] = residual[c] * norm[c];
    }
    out.sum_of_squares(w) = sum_of_squares(residual, cols);
  }
}

}  // namespace canopy::reference
