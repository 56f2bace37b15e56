// logits[w, e] = scale(w) * sum_k router[e, k] * in[w, k] + bias[e], rounded to f32
// chosen[w] = the experts of the `used` largest, largest first, ties to the lower expert, NaN below all numbers
// shares[w, i] = exp(logits[w, chosen[w, i]] - largest) / sum of that over the chosen ones, or over all
// shares[w, used] = 1 / (1 + exp(-logits[w, all])) of a shared expert
// touched[layer] |= the bits of chosen[w] of the rows that have ancestors

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/compute/rows.h"
#include "tests/reference/experts.h"
#include "tests/reference/matrix_product.h"
#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

void mark_touched(const RouteArgs& args, std::span<const uint32_t> chosen) {
  const uint32_t words = args.experts.touched_words(), used = args.experts.used;
  const auto rows = elements<Row>(args.rows, args.width, "route: rows");
  const auto touched = elements<uint32_t>(args.touched, (uint64_t{args.layer} + 1) * words, "route: touched");
  for (size_t i = 0; i < size_t{args.width} * used; ++i) {
    if (rows[i / used].ancestor_count == 0) continue;
    touched[size_t{args.layer} * words + chosen[i] / 32] |= 1u << chosen[i] % 32;
  }
}

}  // namespace

template <>
void compute(const RouteArgs& args) {
  check_experts(args.experts, "route");
  const uint32_t all = args.experts.all, used = args.experts.used;
  const uint32_t router_rows = args.experts.router_rows(), row_shares = args.experts.row_shares();
  require(args.in != nullptr, "route: in is missing.");
  const uint32_t cols = args.in->cols();
  const HostActivations& in = read_activations(args.in, args.width, cols, "route: in");
  const auto router = elements<float>(args.router, uint64_t{router_rows} * cols, "route: router");
  const auto logits = elements<float>(args.logits, uint64_t{args.width} * router_rows, "route: logits");
  const auto chosen = elements<uint32_t>(args.chosen, uint64_t{args.width} * used, "route: chosen");
  const auto shares = elements<float>(args.shares, uint64_t{args.width} * row_shares, "route: shares");

  const std::vector<float> bias = bias_of_rows(args.bias, router_rows, "route: bias");

  std::vector<uint32_t> order(all);
  for (uint32_t w = 0; w < args.width; ++w) {
    float* const own = logits.data() + size_t{w} * router_rows;
    const double scale = in.norm_scale(w, args.norm_eps);
    for (uint32_t e = 0; e < router_rows; ++e) {
      own[e] = static_cast<float>(scale * dot(router.data() + size_t{e} * cols, in.row(w), cols) + bias[e]);
    }
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, [own](uint32_t a, uint32_t b) { return std::isnan(own[b]) ? !std::isnan(own[a]) : own[a] > own[b]; });
    double sum = 0;
    for (uint32_t i = 0; i < (args.of_chosen ? used : all); ++i) sum += std::exp(double{own[order[i]]} - own[order[0]]);
    for (uint32_t i = 0; i < used; ++i) {
      chosen[size_t{w} * used + i] = order[i];
      shares[size_t{w} * row_shares + i] = static_cast<float>(std::exp(double{own[order[i]]} - own[order[0]]) / sum);
    }
    if (args.experts.shared) {
      shares[size_t{w} * row_shares + used] = static_cast<float>(1 / (1 + std::exp(-double{own[all]})));
    }
  }
  if (args.touched != nullptr) mark_touched(args, chosen);
}

}  // namespace canopy::reference
