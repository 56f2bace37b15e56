// Mixtures of experts: the router, and products with the experts that rows have chosen.

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/compute/rows.h"
#include "engine/cpu/fixed_math.h"
#include "engine/cpu/steps.h"

namespace canopy::cpu {

namespace {

float logistic(float logit) {
  return static_cast<float>(1 / (1 + fixed_exp(-double{logit})));
}

/// By what a router with a sigmoid chooses: NaN of experts in groups that are not taken.
void choice_scores(const float* logits, const float* bias, uint32_t all, uint32_t groups, uint32_t groups_used,
                   float* scores) {
  for (uint32_t e = 0; e < all; ++e) scores[e] = bias != nullptr ? logistic(logits[e]) + bias[e] : logistic(logits[e]);
  if (groups == 1) return;
  constexpr float least = -std::numeric_limits<float>::infinity();
  const uint32_t each = all / groups;
  float* sums = scores + all;
  for (uint32_t g = 0; g < groups; ++g) {
    float first = least, second = least;
    for (uint32_t e = g * each; e < (g + 1) * each; ++e) {
      if (scores[e] > first) {
        second = std::exchange(first, scores[e]);
      } else if (scores[e] > second) {
        second = scores[e];
      }
    }
    sums[g] = first + second;
  }
  for (uint32_t g = 0; g < groups; ++g) {
    uint32_t rank = 0;
    for (uint32_t other = 0; other < groups; ++other) {
      rank += sums[other] > sums[g] || (sums[other] == sums[g] && other < g) ? 1 : 0;
    }
    if (rank >= groups_used) std::fill_n(scores + g * each, each, std::numeric_limits<float>::quiet_NaN());
  }
}

}  // namespace

void Compiler::add(const RouteArgs& args) {
  check_route(args);
  const ExpertCounts experts = args.experts;
  const uint32_t router_rows = experts.router_rows(), width = args.width;
  require(args.in != nullptr, "route: in is missing.");
  const RowsView in = rows_of(args.in, width, args.in->cols(), "route: in");
  const float* router = elements(args.router, uint64_t{router_rows} * in.cols, "route: router");
  float* logits = elements(args.logits, uint64_t{width} * router_rows, "route: logits");
  uint32_t* chosen = elements<uint32_t>(args.chosen, uint64_t{width} * experts.used, "route: chosen");
  float* shares = elements(args.shares, uint64_t{width} * experts.row_shares(), "route: shares");
  const float* bias = args.bias != nullptr ? elements(args.bias, router_rows, "route: bias") : nullptr;
  const float* scales = args.scales != nullptr ? elements(args.scales, experts.all, "route: scales") : nullptr;
  const float* choice_bias =
      args.choice_bias != nullptr ? elements(args.choice_bias, experts.all, "route: choice bias") : nullptr;
  const float eps = args.norm_eps, factor_of_all = args.factor;
  const bool of_chosen = args.of_chosen, sigmoid = args.sigmoid;
  const uint32_t groups = args.groups, groups_used = args.groups_used;
  step_of_each(router_rows, [&k = k_, in, router, logits, bias, router_rows, width, eps](Worker&, uint32_t e) {
    for (uint32_t w = 0; w < width; ++w) {
      float factor = 0;
      norm_factors(in, eps, w, 1, &factor);
      const float* row = in.values + size_t{w} * in.blocks * kBlock;
      const float product = factor * k.dot(router + size_t{e} * in.cols, row, in.cols);
      logits[size_t{w} * router_rows + e] = bias != nullptr ? product + bias[e] : product;
    }
  });
  step_of_each(
      width,
      [=](Worker& worker, uint32_t w) {
        const float* own = logits + size_t{w} * router_rows;
        auto* order = reinterpret_cast<uint32_t*>(worker.scratch());
        for (uint32_t e = 0; e < experts.all; ++e) order[e] = e;
        const float* by = own;
        if (sigmoid) {
          float* scores = worker.scratch() + experts.all;
          choice_scores(own, choice_bias, experts.all, groups, groups_used, scores);
          by = scores;
        }
        const auto before = [by](uint32_t a, uint32_t b) {
          if (std::isnan(by[a]) || std::isnan(by[b])) {
            if (std::isnan(by[a]) && std::isnan(by[b])) return a < b;
            return std::isnan(by[b]);
          }
          return by[a] != by[b] ? by[a] > by[b] : a < b;
        };
        std::partial_sort(order, order + experts.used, order + experts.all, before);
        const auto score = [&](uint32_t e) {
          return sigmoid ? double{logistic(own[e])} : fixed_exp(double{own[e]} - own[order[0]]);
        };
        double sum = sigmoid ? double{RouteArgs::kLeastSum} : 0;
        for (uint32_t i = 0; of_chosen && i < experts.used; ++i) sum += score(order[i]);
        for (uint32_t e = 0; !of_chosen && !sigmoid && e < experts.all; ++e) sum += score(e);
        if (sigmoid && !of_chosen) sum = 1;
        for (uint32_t i = 0; i < experts.used; ++i) {
          chosen[size_t{w} * experts.used + i] = order[i];
          const float share = static_cast<float>(score(order[i]) / sum) * factor_of_all;
          shares[size_t{w} * experts.row_shares() + i] = scales != nullptr ? share * scales[order[i]] : share;
        }
        if (experts.shared) {
          shares[size_t{w} * experts.row_shares() + experts.used] =
              experts.shared_gate ? logistic(own[experts.all]) : 1.0f;
        }
      },
      uint64_t{2} * experts.all + groups);
  if (args.touched == nullptr) return;
  const uint32_t words = experts.touched_words();
  const Row* rows = elements<Row>(args.rows, width, "route: rows");
  uint32_t* touched = elements<uint32_t>(args.touched, (uint64_t{args.layer} + 1) * words, "route: touched") +
                      size_t{args.layer} * words;
  step_of_each(1, [rows, touched, chosen, experts, width](Worker&, uint32_t) {
    for (size_t i = 0; i < size_t{width} * experts.used; ++i) {
      if (rows[i / experts.used].ancestor_count > 0) touched[chosen[i] / 32] |= 1u << chosen[i] % 32;
    }
  });
}

void Compiler::add(const CountExpertsArgs& args) {
  check_experts(args.experts, "count_experts");
  const uint32_t words = args.experts.touched_words();
  uint32_t* touched = elements<uint32_t>(args.touched, uint64_t{args.layers} * words, "count_experts: touched");
  uint32_t* counts = elements<uint32_t>(args.counts, args.layers, "count_experts: counts");
  step_of_each(args.layers, [touched, counts, words](Worker&, uint32_t l) {
    counts[l] = 0;
    for (uint32_t i = 0; i < words; ++i) {
      counts[l] += static_cast<uint32_t>(std::popcount(std::exchange(touched[size_t{l} * words + i], 0)));
    }
  });
}

namespace {

/// Pairs of a row and one of its experts, by expert.
struct PairsByExpert {
  uint32_t* pairs;   // [width * used]
  uint32_t* starts;  // [all + 1]

  PairsByExpert(const uint32_t* chosen, uint32_t count, uint32_t all, float* memory)
      : pairs(reinterpret_cast<uint32_t*>(memory)), starts(pairs + count) {
    std::fill_n(starts, all + 1, 0);
    const auto expert_of = [&](uint32_t i) { return std::min(chosen[i], all - 1); };
    for (uint32_t i = 0; i < count; ++i) ++starts[expert_of(i) + 1];
    for (uint32_t e = 0; e < all; ++e) starts[e + 1] += starts[e];
    for (uint32_t i = 0; i < count; ++i) pairs[starts[expert_of(i)]++] = i;
    for (uint32_t e = all; e > 0; --e) starts[e] = starts[e - 1];
    starts[0] = 0;
  }
  static uint64_t floats(uint32_t count, uint32_t all) { return uint64_t{count} + all + 1; }
};

/// Products of some rows of each expert with the rows of a pass that have chosen it.
struct ExpertProducts {
  const Packed& weight;
  const RowsView& in;
  uint32_t expert_rows;
  uint32_t used_of_in;  // pairs that share a row of `in`
  float eps;

  /// Floats of scratch memory for `outputs` rows of an expert.
  static uint64_t floats(uint32_t cols, uint32_t outputs) {
    const uint64_t blocks = blocks_of(cols);
    return kRowsAtOnce * (blocks * (kBlock / 2 + 4 + kBlock) + outputs + 2 * kBand + 1);
  }

  /// Calls take(pair, products) for pairs [0, count), the products being of rows [first, first + outputs) of the
  /// expert.
  template <class Take>
  void run(const Kernels& k, uint32_t expert, uint32_t first, uint32_t outputs, const uint32_t* pairs, uint32_t count,
           float* memory, Take take) const {
    const uint64_t begin = uint64_t{expert} * expert_rows + first;
    const auto band = static_cast<uint32_t>(begin / kBand), skipped = static_cast<uint32_t>(begin % kBand);
    const uint32_t bands = (skipped + outputs + kBand - 1) / kBand;
    float* factors = memory;
    float* products = factors + kRowsAtOnce;
    float* gathered = products + size_t{kRowsAtOnce} * bands * kBand;
    for (uint32_t done = 0; done < count; done += kRowsAtOnce) {
      const uint32_t rows = std::min(kRowsAtOnce, count - done);
      for (uint32_t r = 0; r < rows; ++r) norm_factors(in, eps, pairs[done + r] / used_of_in, 1, factors + r);
      RowsView own = in;
      uint32_t own_first = pairs[done] / used_of_in;
      if (rows > 1) {
        own = gather(pairs + done, rows, gathered);
        own_first = 0;
      }
      k.product(weight, band, bands, own, own_first, rows, factors, products, uint64_t{bands} * kBand);
      for (uint32_t r = 0; r < rows; ++r) take(pairs[done + r], products + size_t{r} * bands * kBand + skipped);
    }
  }

 private:
  /// The rows of these pairs side by side, as the products of tiles want them.
  RowsView gather(const uint32_t* pairs, uint32_t rows, float* memory) const {
    RowsView own = in;
    own.stride = rows;
    own.values = memory;
    own.factors = reinterpret_cast<BlockFactors*>(own.values + size_t{rows} * in.blocks * kBlock);
    own.codes = reinterpret_cast<int16_t*>(own.factors + size_t{rows} * in.blocks);
    for (uint32_t r = 0; r < rows; ++r) {
      const size_t from = pairs[r] / used_of_in;
      for (uint32_t b = 0; b < in.blocks; ++b) {
        const size_t source = size_t{b} * in.stride + from, target = size_t{b} * rows + r;
        std::copy_n(in.codes + source * kBlock, kBlock, own.codes + target * kBlock);
        own.factors[target] = in.factors[source];
      }
      const size_t row = size_t{in.blocks} * kBlock;
      std::copy_n(in.values + from * row, row, own.values + r * row);
    }
    return own;
  }
};

uint32_t rows_of_expert(const Packed& weight, const ExpertCounts& experts, const char* op) {
  check_experts(experts, op);
  require(weight.rows % experts.all == 0, std::string(op) + ": the weight's " + std::to_string(weight.rows) +
                                              " rows are no multiple of " + std::to_string(experts.all) + " experts.");
  return weight.rows / experts.all;
}

}  // namespace

void Compiler::add(const ExpertSwigluArgs& args) {
  const Packed& weight = packed_of(args.weight, "expert_swiglu: weight");
  const uint32_t rows = rows_of_expert(weight, args.experts, "expert_swiglu"), used = args.experts.used;
  require(rows % 2 == 0, "expert_swiglu: an expert has an odd number of rows, so they are not paired.");
  require(args.out != args.in, "expert_swiglu: in and out are the same activations.");
  const uint32_t pairs = args.width * used, all = args.experts.all;
  const RowsView in = rows_of(args.in, args.width, weight.cols, "expert_swiglu: in");
  const RowsView out = rows_of(args.out, pairs, rows / 2, "expert_swiglu: out");
  const uint32_t* chosen = elements<uint32_t>(args.chosen, pairs, "expert_swiglu: chosen");
  const float* bias = args.bias != nullptr ? elements(args.bias, weight.rows, "expert_swiglu: bias") : nullptr;
  const float eps = args.norm_eps, limit = args.limit;
  const uint32_t function = limit > 0 ? 2 : args.gate == GateFunction::gelu ? 1 : 0;
  const uint64_t lists = PairsByExpert::floats(pairs, all);
  const auto work = [&k = k_, weight, in, out, chosen, bias, eps, limit, function, rows, used, pairs, all,
                     lists](Worker& worker) {
    const PairsByExpert order(chosen, pairs, all, worker.scratch());
    const ExpertProducts products{weight, in, rows, used, eps};
    uint32_t first = 0, end = 0;
    while (worker.next(all * out.blocks, 1, first, end)) {
      const uint32_t expert = first / out.blocks, block = first % out.blocks;
      const uint32_t start = order.starts[expert], count = order.starts[expert + 1] - start;
      if (count == 0) continue;
      const uint32_t at = block * kBlock, outputs = std::min(kBlock, out.cols - at);
      const Reading reading(worker, 2 * outputs * weight.band_bytes / kBand);
      products.run(k, expert, 2 * at, 2 * outputs, order.pairs + start, count, worker.scratch() + lists,
                   [&](uint32_t pair, float* own) {
                     const float* more = bias != nullptr ? bias + uint64_t{expert} * rows + 2 * at : nullptr;
                     for (uint32_t i = 0; more != nullptr && i < 2 * outputs; ++i) own[i] += more[i];
                     float gate[kBlock], up[kBlock], result[kBlock] = {};
                     split_pairs(own, outputs, gate, up);
                     k.gated(function, gate, up, limit, result, outputs);
                     k.write_block(out, pair, block, result, nullptr);
                   });
    }
  };
  plan_.scratch_floats = std::max(plan_.scratch_floats, lists + ExpertProducts::floats(weight.cols, 2 * kBlock));
  plan_.steps.push_back({work, false});
}

void Compiler::add(const ExpertAddArgs& args) {
  const Packed& weight = packed_of(args.weight, "expert_add: weight");
  const uint32_t rows = rows_of_expert(weight, args.experts, "expert_add"), used = args.experts.used;
  require(args.out != args.in, "expert_add: in and out are the same activations.");
  const bool adds = args.x != nullptr;
  const uint32_t width = args.width, pairs = width * used, all = args.experts.all;
  const uint32_t row_shares = args.experts.row_shares();
  const RowsView in = rows_of(args.in, pairs, weight.cols, "expert_add: in");
  const uint32_t* chosen = elements<uint32_t>(args.chosen, pairs, "expert_add: chosen");
  const float* shares = adds ? elements(args.shares, uint64_t{width} * row_shares, "expert_add: shares") : nullptr;
  const float* shared =
      adds && args.experts.shared ? elements(args.shared, uint64_t{width} * rows, "expert_add: shared") : nullptr;
  float* products = elements(args.products, uint64_t{pairs} * rows, "expert_add: products");
  const float* bias = args.bias != nullptr ? elements(args.bias, weight.rows, "expert_add: bias") : nullptr;
  const uint64_t lists = PairsByExpert::floats(pairs, all);
  static constexpr uint32_t kOutputs = 4 * kBand;
  const uint32_t units = (rows + kOutputs - 1) / kOutputs;
  const auto work = [&k = k_, weight, in, chosen, bias, products, rows, pairs, all, units, lists](Worker& worker) {
    const PairsByExpert order(chosen, pairs, all, worker.scratch());
    const ExpertProducts own_products{weight, in, rows, 1, 0};
    uint32_t first = 0, end = 0;
    while (worker.next(all * units, 1, first, end)) {
      const uint32_t expert = first / units, at = first % units * kOutputs;
      const uint32_t start = order.starts[expert], count = order.starts[expert + 1] - start;
      if (count == 0) continue;
      const uint32_t outputs = std::min(kOutputs, rows - at);
      const Reading reading(worker, outputs * weight.band_bytes / kBand);
      own_products.run(k, expert, at, outputs, order.pairs + start, count, worker.scratch() + lists,
                       [&](uint32_t pair, const float* own) {
                         float* result = products + uint64_t{pair} * rows + at;
                         const float* more = bias != nullptr ? bias + uint64_t{expert} * rows + at : nullptr;
                         for (uint32_t i = 0; i < outputs; ++i) result[i] = more != nullptr ? own[i] + more[i] : own[i];
                       });
    }
  };
  plan_.scratch_floats = std::max(plan_.scratch_floats, lists + ExpertProducts::floats(weight.cols, kOutputs));
  plan_.steps.push_back({work, false});
  if (!adds) return;
  const ResidualOut to = residual_out(args, rows, "expert_add");
  step_of_each(width * to.out.blocks,
               [&k = k_, to, shares, shared, products, rows, used, row_shares](Worker&, uint32_t unit) {
                 const uint32_t w = unit / to.out.blocks, block = unit % to.out.blocks;
                 const uint32_t at = block * kBlock, count = std::min(kBlock, rows - at);
                 float sums[kBlock] = {};
                 const auto add_share = [&](float share, const float* from) {
                   for (uint32_t i = 0; i < count; ++i) sums[i] += share * from[i];
                 };
                 for (uint32_t i = 0; i < used; ++i) {
                   add_share(shares[size_t{w} * row_shares + i], products + (uint64_t{w} * used + i) * rows + at);
                 }
                 if (shared != nullptr)
                   add_share(shares[size_t{w} * row_shares + used], shared + size_t{w} * rows + at);
                 for (uint32_t i = 0; i < count; ++i) sums[i] = to.x[size_t{w} * rows + at + i] + sums[i];
                 to.store(k, w, block, sums, count);
               });
}

}  // namespace canopy::cpu
