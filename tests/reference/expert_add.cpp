// products[w, i, r] = sum_k weight[r, k] * in[w * used + i, k] + bias[r] with the rows of expert chosen[w, i], rounded
// to f32
// x[w, r] += sum over i of shares[w, i] * products[w, i, r], and shares[w, used] * shared[w, r] of a shared expert
// out[w] = x[w] * norm.weight, with the sum of squares of x[w];   aux[w, aux_offset + r] = x[w, r]

#include "tests/reference/experts.h"
#include "tests/reference/matrix_product.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const ExpertAddArgs& args) {
  const HostWeight& weight = host_weight(args.weight, "expert_add: weight");
  const uint32_t rows = rows_of_expert(weight, args.experts, "expert_add"), used = args.experts.used;
  const HostActivations& in = read_activations(args.in, args.width * used, weight.cols(), "expert_add: in");
  const auto chosen = chosen_experts(args.chosen, args.width, args.experts, "expert_add");
  const uint32_t row_shares = args.experts.row_shares();
  const auto products = elements<float>(args.products, uint64_t{args.width} * used * rows, "expert_add: products");
  const std::vector<float> bias = bias_of_rows(args.bias, weight.rows(), "expert_add: bias");
  const auto product_of = [&](uint32_t pair) {
    const auto own = expert_products(weight, chosen[pair], rows, in.row(pair), 1, bias);
    for (uint32_t r = 0; r < rows; ++r) products[size_t{pair} * rows + r] = static_cast<float>(own[r]);
  };
  if (args.x == nullptr) {
    for (uint32_t pair = 0; pair < args.width * used; ++pair) product_of(pair);
    return;
  }
  const auto shares = elements<float>(args.shares, uint64_t{args.width} * row_shares, "expert_add: shares");
  std::span<const float> shared;
  if (args.experts.shared) shared = elements<float>(args.shared, uint64_t{args.width} * rows, "expert_add: shared");
  const auto x = elements<float>(args.x, uint64_t{args.width} * rows, "expert_add: x");
  const auto norm = elements<float>(args.norm.weight, rows, "expert_add: norm weight");
  HostActivations& out = written_activations(args.out, args.width, rows, "expert_add: out");
  std::span<float> aux;
  if (args.aux != nullptr) {
    aux = elements<float>(args.aux, uint64_t{args.width} * args.aux_stride, "expert_add: aux");
    require(uint64_t{args.aux_offset} + rows <= args.aux_stride, "expert_add: aux offset + rows exceed its stride.");
  }
  require(args.out != args.in, "expert_add: in and out are the same activations.");

  for (uint32_t w = 0; w < args.width; ++w) {
    std::vector<double> sums(rows);
    const float* const own_shares = shares.data() + size_t{w} * row_shares;
    for (uint32_t i = 0; i < used; ++i) {
      const uint32_t pair = w * used + i;
      product_of(pair);
      for (uint32_t r = 0; r < rows; ++r) {
        sums[r] += double{own_shares[i]} * products[size_t{pair} * rows + r];
      }
    }
    for (uint32_t r = 0; r < rows && !shared.empty(); ++r) {
      sums[r] += double{own_shares[used]} * shared[size_t{w} * rows + r];
    }
    float* residual = x.data() + size_t{w} * rows;
    for (uint32_t r = 0; r < rows; ++r) {
      residual[r] = static_cast<float>(residual[r] + sums[r]);
      out.row(w)[r] = residual[r] * norm[r];
      if (!aux.empty()) aux[size_t{w} * args.aux_stride + args.aux_offset + r] = residual[r];
    }
    out.sum_of_squares(w) = sum_of_squares(residual, rows);
  }
}

}  // namespace canopy::reference
