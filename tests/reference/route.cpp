// logits[w, e] = scale(w) * sum_k router[e, k] * in[w, k] + bias[e], rounded to f32
// chosen[w] = the experts of the `used` largest, largest first, ties to the lower expert, NaN below all numbers
// shares[w, i] = exp(logits[w, chosen[w, i]] - largest) / sum of that over the chosen ones, or over all, times the
// expert's scale where there are scales
// shares[w, used] = 1 / (1 + exp(-logits[w, all])) of a shared expert
// with a sigmoid: scores 1 / (1 + exp(-logit)), chosen by scores + choice bias in the groups whose two largest have the
// largest sums; shares = factor * score, over the sum of the chosen ones where of_chosen
// touched[layer] |= the bits of chosen[w] of the rows that have ancestors

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
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

/// By what experts are chosen: NaN where they cannot be.
std::vector<float> choice_scores(const RouteArgs& args, const float* logits, std::span<const float> bias) {
  const uint32_t all = args.experts.all, each = all / args.groups;
  std::vector<float> scores(logits, logits + all);
  if (!args.sigmoid) return scores;
  for (uint32_t e = 0; e < all; ++e) {
    scores[e] = static_cast<float>(1 / (1 + std::exp(-double{logits[e]}))) + (bias.empty() ? 0.0f : bias[e]);
  }
  if (args.groups == 1) return scores;
  std::vector<float> sums;
  for (uint32_t g = 0; g < args.groups; ++g) {
    std::vector<float> own;
    for (uint32_t e = g * each; e < (g + 1) * each; ++e) {
      own.push_back(std::isnan(scores[e]) ? -std::numeric_limits<float>::infinity() : scores[e]);
    }
    std::ranges::partial_sort(own, own.begin() + 2, std::greater<>());
    sums.push_back(own[0] + own[1]);
  }
  for (uint32_t g = 0; g < args.groups; ++g) {
    uint32_t rank = 0;
    for (uint32_t other = 0; other < args.groups; ++other) {
      rank += sums[other] > sums[g] || (sums[other] == sums[g] && other < g) ? 1 : 0;
    }
    if (rank < args.groups_used) continue;
    for (uint32_t e = g * each; e < (g + 1) * each; ++e) scores[e] = std::numeric_limits<float>::quiet_NaN();
  }
  return scores;
}

}  // namespace

template <>
void compute(const RouteArgs& args) {
  check_route(args);
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
  std::span<const float> scales, choice_bias;
  if (args.choice_bias != nullptr) choice_bias = elements<float>(args.choice_bias, all, "route: choice bias");
  if (args.scales != nullptr) scales = elements<float>(args.scales, all, "route: scales");

  std::vector<uint32_t> order(all);
  for (uint32_t w = 0; w < args.width; ++w) {
    float* const own = logits.data() + size_t{w} * router_rows;
    const double scale = in.norm_scale(w, args.norm_eps);
    for (uint32_t e = 0; e < router_rows; ++e) {
      own[e] = static_cast<float>(scale * dot(router.data() + size_t{e} * cols, in.row(w), cols) + bias[e]);
    }
    std::iota(order.begin(), order.end(), 0);
    const std::vector<float> by = choice_scores(args, own, choice_bias);
    std::ranges::stable_sort(
        order, [&by](uint32_t a, uint32_t b) { return std::isnan(by[b]) ? !std::isnan(by[a]) : by[a] > by[b]; });
    const auto score = [&](uint32_t e) {
      return args.sigmoid ? 1 / (1 + std::exp(-double{own[e]})) : std::exp(double{own[e]} - own[order[0]]);
    };
    double sum = args.sigmoid ? double{RouteArgs::kLeastSum} : 0;
    for (uint32_t i = 0; i < (args.of_chosen ? used : all); ++i) sum += score(order[i]);
    if (args.sigmoid && !args.of_chosen) sum = 1;
    for (uint32_t i = 0; i < used; ++i) {
      chosen[size_t{w} * used + i] = order[i];
      const double share = score(order[i]) / sum * args.factor;
      shares[size_t{w} * row_shares + i] = static_cast<float>(scales.empty() ? share : share * scales[order[i]]);
    }
    if (args.experts.shared) {
      shares[size_t{w} * row_shares + used] =
          args.experts.shared_gate ? static_cast<float>(1 / (1 + std::exp(-double{own[all]}))) : 1.0f;
    }
  }
  if (args.touched != nullptr) mark_touched(args, chosen);
}

}  // namespace canopy::reference
