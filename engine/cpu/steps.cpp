#include "engine/cpu/steps.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "engine/compute/row_sampler.h"
#include "engine/compute/rows.h"
#include "engine/cpu/fixed_math.h"
#include "engine/cpu/objects.h"
#include "engine/cpu/packing.h"

namespace canopy::cpu {
namespace {

// Rows whose results stand in scratch memory before they are stored.
constexpr uint32_t kRowsAtOnce = 64;
// Bands whose outputs fill a block of activations: as they are, and as pairs of gate and up.
constexpr uint32_t kBandsOfBlock = 2, kBandsOfGatedBlock = 4;
// So many times each thread takes its share of a step, so that a slow core can be left behind.
constexpr uint32_t kTakesOfThread = 6;
// What attention hands from one step to the next: enough rows at once for each thread to have work.
constexpr uint64_t kAttentionFloats = 4 << 20;

uint32_t blocks_of(uint32_t cols) {
  return (cols + kBlock - 1) / kBlock;
}

class Compiler {
 public:
  Compiler(const Kernels& kernels, uint32_t threads, Plan& plan) : k_(kernels), threads_(threads), plan_(plan) {}

  void add(const EmbedArgs& args);
  void add(const LinearArgs& args);
  void add(const LinearAddArgs& args);
  void add(const LinearSwigluArgs& args);
  void add(const RouteArgs& args);
  void add(const ExpertSwigluArgs& args);
  void add(const ExpertAddArgs& args);
  void add(const AddBiasArgs& args);
  void add(const RopeStoreArgs& args);
  void add(const ProjectHeadsArgs& args);
  void add(const AttentionArgs& args);
  void add(const SelectArgs& args);
  void add(const ArgmaxArgs& args);
  void add(const TopKArgs& args);
  void add(const SampleArgs& args);
  void add(const PickArgs& args);
  void add(const CopyRowsArgs& args);
  void add(const NormRowsArgs& args);
  void add(const KvMoveArgs& args);
  void add(const DeltaInputsArgs& args);
  void add(const DeltaNetArgs& args);
  void add(const GatedNormArgs& args);
  void add(const GateArgs& args);
  void add(const NormAddArgs& args);
  void add(const CapLogitsArgs& args);
  void add(const CountExpertsArgs& args);

 private:
  /// A step whose units [first, end) are done by work(worker, first, end), each thread taking several at a time.
  template <class Work>
  void step(uint32_t units, Work work, uint64_t scratch_floats = 0) {
    const uint32_t most = std::max(1u, units / (threads_ * kTakesOfThread));
    plan_.scratch_floats = std::max(plan_.scratch_floats, scratch_floats);
    plan_.steps.push_back({[units, most, work = std::move(work)](Worker& worker) {
                             uint32_t first = 0, end = 0;
                             while (worker.next(units, most, first, end)) work(worker, first, end);
                           },
                           false});
  }
  /// The same, each unit by itself.
  template <class Work>
  void step_of_each(uint32_t units, Work work, uint64_t scratch_floats = 0) {
    step(
        units,
        [work = std::move(work)](Worker& worker, uint32_t first, uint32_t end) {
          for (uint32_t unit = first; unit < end; ++unit) work(worker, unit);
        },
        scratch_floats);
  }
  /// Memory that all threads have in common, from one step of an op to its next (Worker::common).
  void reserve_common(uint64_t floats) { plan_.common_floats = std::max(plan_.common_floats, floats); }

  const Kernels& k_;
  uint32_t threads_;
  Plan& plan_;
};

// ---- rows of activations
// -----------------------------------------------------------------------------------------------

/// Factors of the norm that stands before a product, for rows first ... first + count - 1; 1 where eps is 0.
void norm_factors(const RowsView& in, float eps, uint32_t first, uint32_t count, float* to) {
  for (uint32_t r = 0; r < count; ++r) {
    to[r] = 1;
    if (eps <= 0) continue;
    float sum = 0;
    for (uint32_t b = 0; b < in.blocks; ++b) sum += in.squares[size_t{b} * in.stride + first + r];
    to[r] = 1 / std::sqrt(sum / static_cast<float>(in.cols) + eps);
  }
}

double sum_of_squares(const float* x, uint32_t count) {
  double sums[8] = {};
  uint32_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (uint32_t c = 0; c < 8; ++c) sums[c] += double{x[i + c]} * double{x[i + c]};
  }
  for (; i < count; ++i) sums[i % 8] += double{x[i]} * double{x[i]};
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/// Where a residual stream and what is derived of it go.
struct ResidualOut {
  RowsView out;
  const float* norm = nullptr;
  float* x = nullptr;  // [W, cols]
  float* aux = nullptr;
  uint32_t aux_stride = 0, aux_offset = 0;
  float aux_scale = 1;

  /// Stores a block of x, whose `count` values it has, and what follows of them.
  void store(const Kernels& k, uint32_t row, uint32_t block, const float* values, uint32_t count) const {
    float squared[kBlock] = {}, normed[kBlock] = {};
    const uint32_t c = block * kBlock;
    std::copy_n(values, count, x + size_t{row} * out.cols + c);
    for (uint32_t i = 0; i < count; ++i) {
      squared[i] = values[i];
      normed[i] = norm != nullptr ? values[i] * norm[c + i] : values[i];
    }
    k.write_block(out, row, block, normed, squared);
    if (aux == nullptr) return;
    float* to = aux + size_t{row} * aux_stride + aux_offset + c;
    for (uint32_t i = 0; i < count; ++i) to[i] = aux_scale * values[i];
  }
};

template <class Args>
ResidualOut residual_out(const Args& args, uint32_t cols, const std::string& op) {
  ResidualOut to;
  to.out = rows_of(args.out, args.width, cols, op + ": out");
  to.norm = elements(args.norm.weight, cols, op + ": norm weight");
  to.x = elements(args.x, uint64_t{args.width} * cols, op + ": x");
  if constexpr (requires { args.aux; }) {
    if (args.aux == nullptr) return to;
    require(uint64_t{args.aux_offset} + cols <= args.aux_stride, op + ": aux offset + columns exceed its stride.");
    to.aux = elements(args.aux, uint64_t{args.width} * args.aux_stride, op + ": aux");
    to.aux_stride = args.aux_stride;
    to.aux_offset = args.aux_offset;
  }
  return to;
}

void Compiler::add(const EmbedArgs& args) {
  const Packed& table = packed_of(args.table, "embed: table");
  const Row* rows = elements<Row>(args.rows, args.width, "embed: rows");
  const ResidualOut to = residual_out(args, table.cols, "embed");
  const float scale = args.scale;
  step_of_each(
      args.width,
      [&k = k_, table, rows, to, scale](Worker& worker, uint32_t w) {
        float* values = worker.scratch();
        unpack_row(table, std::min(rows[w].token, table.rows - 1), values);
        if (scale != 1) {
          for (uint32_t c = 0; c < table.cols; ++c) values[c] *= scale;
        }
        for (uint32_t c = 0; c < table.cols; c += kBlock) {
          to.store(k, w, c / kBlock, values + c, std::min(kBlock, table.cols - c));
        }
      },
      table.cols);
}

void Compiler::add(const NormRowsArgs& args) {
  require(args.out != nullptr, "norm_rows: out is missing.");
  const uint32_t cols = args.out->cols();
  const RowsView out = rows_of(args.out, args.width, cols, "norm_rows: out");
  const float* in = elements(args.in, uint64_t{args.width} * cols, "norm_rows: in");
  const float* norm =
      args.norm.weight != nullptr ? elements(args.norm.weight, cols, "norm_rows: norm weight") : nullptr;
  step_of_each(args.width, [&k = k_, out, in, norm, cols](Worker&, uint32_t w) {
    for (uint32_t c = 0; c < cols; c += kBlock) {
      float squared[kBlock] = {}, normed[kBlock] = {};
      for (uint32_t i = 0; i < std::min(kBlock, cols - c); ++i) {
        squared[i] = in[size_t{w} * cols + c + i];
        normed[i] = norm != nullptr ? squared[i] * norm[c + i] : squared[i];
      }
      k.write_block(out, w, c / kBlock, normed, squared);
    }
  });
}

void Compiler::add(const NormAddArgs& args) {
  require(args.out != nullptr, "norm_add: out is missing.");
  require(args.in != args.x, "norm_add: in and x are the same buffer.");
  const uint32_t cols = args.out->cols();
  ResidualOut to = residual_out(args, cols, "norm_add");
  to.aux_scale = args.aux_scale;
  const float* in = elements(args.in, uint64_t{args.width} * cols, "norm_add: in");
  const float* weight = elements(args.weight, cols, "norm_add: weight");
  const float eps = args.eps;
  step_of_each(args.width, [&k = k_, to, in, weight, cols, eps](Worker&, uint32_t w) {
    const float* row = in + size_t{w} * cols;
    const auto factor = static_cast<float>(1 / std::sqrt(sum_of_squares(row, cols) / cols + double{eps}));
    for (uint32_t c = 0; c < cols; c += kBlock) {
      float x[kBlock];
      const uint32_t count = std::min(kBlock, cols - c);
      for (uint32_t i = 0; i < count; ++i) x[i] = to.x[size_t{w} * cols + c + i] + row[c + i] * factor * weight[c + i];
      to.store(k, w, c / kBlock, x, count);
    }
  });
}

void Compiler::add(const SelectArgs& args) {
  require(args.in != nullptr, "select: in is missing.");
  require(args.out != args.in, "select: in and out are the same activations.");
  const uint32_t cols = args.in->cols();
  const RowsView in = rows_of(args.in, args.width, cols, "select: in");
  const RowsView out = rows_of(args.out, args.count, cols, "select: out");
  const uint32_t* index =
      elements<uint32_t>(args.index, uint64_t{args.first} + args.count, "select: index") + args.first;
  step_of_each(args.count, [in, out, index](Worker&, uint32_t i) {
    const uint32_t from = std::min(index[i], in.stride - 1);
    for (uint32_t b = 0; b < in.blocks; ++b) {
      const size_t source = size_t{b} * in.stride + from, target = size_t{b} * out.stride + i;
      std::copy_n(in.codes + source * kBlock, kBlock, out.codes + target * kBlock);
      out.factors[target] = in.factors[source];
      out.squares[target] = in.squares[source];
    }
    const size_t row = size_t{in.blocks} * kBlock;
    std::copy_n(in.values + from * row, row, out.values + i * row);
  });
}

/// Changes blocks of activations in place.
template <class Change>
void change_block(const Kernels& k, const RowsView& rows, uint32_t row, uint32_t block, Change change) {
  float values[kBlock] = {};
  const uint32_t count = std::min(kBlock, rows.cols - block * kBlock);
  std::copy_n(rows.values + (size_t{row} * rows.blocks + block) * kBlock, count, values);
  change(values, count);
  k.write_block(rows, row, block, values, nullptr);
}

void Compiler::add(const GateArgs& args) {
  require(args.x != nullptr, "gate: x is missing.");
  const RowsView x = rows_of(args.x, args.width, args.x->cols(), "gate: x");
  const float* gate = elements(args.gate, uint64_t{args.width} * x.cols, "gate: gate");
  step_of_each(args.width * x.blocks, [&k = k_, x, gate](Worker&, uint32_t unit) {
    const uint32_t w = unit / x.blocks, block = unit % x.blocks;
    change_block(k, x, w, block, [&](float* values, uint32_t count) {
      float open[kBlock];
      std::copy_n(gate + size_t{w} * x.cols + block * kBlock, count, open);
      k.sigmoid(open, count);
      for (uint32_t i = 0; i < count; ++i) values[i] *= open[i];
    });
  });
}

void Compiler::add(const GatedNormArgs& args) {
  const uint32_t cols = args.heads * args.head_dim, dim = args.head_dim;
  const float* in = elements(args.in, uint64_t{args.width} * cols, "gated_norm: in");
  const float* gate = elements(args.gate, uint64_t{args.width} * cols, "gated_norm: gate");
  const float* weight = elements(args.weight, dim, "gated_norm: weight");
  const RowsView out = rows_of(args.out, args.width, cols, "gated_norm: out");
  const float eps = args.eps;
  step_of_each(
      args.width,
      [&k = k_, in, gate, weight, out, eps, cols, dim](Worker& worker, uint32_t w) {
        float* open = worker.scratch();
        float* result = open + cols;
        std::copy_n(gate + size_t{w} * cols, cols, open);
        k.silu(open, cols);
        for (uint32_t h = 0; h < cols; h += dim) {
          const float* head = in + size_t{w} * cols + h;
          const auto scale = static_cast<float>(1 / std::sqrt(sum_of_squares(head, dim) / dim + double{eps}));
          for (uint32_t d = 0; d < dim; ++d) result[h + d] = head[d] * scale * weight[d] * open[h + d];
        }
        std::fill_n(result + cols, out.blocks * kBlock - cols, 0.0f);
        for (uint32_t b = 0; b < out.blocks; ++b) k.write_block(out, w, b, result + size_t{b} * kBlock, nullptr);
      },
      2 * uint64_t{cols} + kBlock);
}

// ---- products
// ----------------------------------------------------------------------------------------------------------

void Compiler::add(const LinearArgs& args) {
  const Packed& weight = packed_of(args.weight, "linear: weight");
  const RowsView in = rows_of(args.in, args.width, weight.cols, "linear: in");
  require(uint64_t{args.offset} + weight.rows <= args.stride, "linear: offset + rows exceed the stride.");
  float* out = elements(args.out, uint64_t{args.width} * args.stride, "linear: out") + args.offset;
  const uint32_t width = args.width, stride = args.stride;
  const float eps = args.norm_eps;
  step(
      weight.bands,
      [&k = k_, weight, in, out, width, stride, eps](Worker& worker, uint32_t first, uint32_t end) {
        float* factors = worker.scratch();
        norm_factors(in, eps, 0, width, factors);
        const uint32_t whole = std::min(end, weight.rows / kBand);
        if (whole > first) {
          k.product(weight, first, whole - first, in, 0, width, factors, out + size_t{first} * kBand, stride);
        }
        if (end <= whole) return;
        float* rest = factors + width;  // the last band, which has fewer rows
        k.product(weight, whole, 1, in, 0, width, factors, rest, kBand);
        for (uint32_t w = 0; w < width; ++w) {
          std::copy_n(rest + size_t{w} * kBand, weight.rows - whole * kBand, out + size_t{w} * stride + whole * kBand);
        }
      },
      uint64_t{width} * (1 + kBand));
}

void Compiler::add(const LinearAddArgs& args) {
  const Packed& weight = packed_of(args.weight, "linear_add: weight");
  require(args.out != args.in, "linear_add: in and out are the same activations.");
  const RowsView in = rows_of(args.in, args.width, weight.cols, "linear_add: in");
  const ResidualOut to = residual_out(args, weight.rows, "linear_add");
  const uint32_t width = args.width;
  step_of_each(
      blocks_of(weight.rows),
      [&k = k_, weight, in, to, width](Worker& worker, uint32_t block) {
        float* factors = worker.scratch();
        float* products = factors + kRowsAtOnce;
        const uint32_t band = block * kBandsOfBlock, bands = std::min(kBandsOfBlock, weight.bands - band);
        const uint32_t count = std::min(kBlock, weight.rows - block * kBlock);
        std::fill_n(factors, kRowsAtOnce, 1.0f);
        for (uint32_t w = 0; w < width; w += kRowsAtOnce) {
          const uint32_t rows = std::min(kRowsAtOnce, width - w);
          k.product(weight, band, bands, in, w, rows, factors, products, kBlock);
          for (uint32_t r = 0; r < rows; ++r) {
            float* x = products + size_t{r} * kBlock;
            const float* before = to.x + size_t{w + r} * weight.rows + block * kBlock;
            for (uint32_t i = 0; i < count; ++i) x[i] = before[i] + x[i];
            to.store(k, w + r, block, x, count);
          }
        }
      },
      kRowsAtOnce * (1 + kBlock));
}

/// Results of a paired weight, gate and up by turns, apart.
void split_pairs(const float* pairs, uint32_t count, float* gate, float* up) {
  for (uint32_t i = 0; i < count; ++i) {
    gate[i] = pairs[2 * i];
    up[i] = pairs[2 * i + 1];
  }
}

void Compiler::add(const LinearSwigluArgs& args) {
  const Packed& weight = packed_of(args.weight, "linear_swiglu: weight");
  require(weight.rows % 2 == 0, "linear_swiglu: the weight is not paired, it has an odd number of rows.");
  require(args.out != args.in, "linear_swiglu: in and out are the same activations.");
  const RowsView in = rows_of(args.in, args.width, weight.cols, "linear_swiglu: in");
  const RowsView out = rows_of(args.out, args.width, weight.rows / 2, "linear_swiglu: out");
  const uint32_t width = args.width, function = args.gate == GateFunction::silu ? 0 : 1;
  const float eps = args.norm_eps;
  step_of_each(
      out.blocks,
      [&k = k_, weight, in, out, width, function, eps](Worker& worker, uint32_t block) {
        float* factors = worker.scratch();
        float* products = factors + kRowsAtOnce;
        const uint32_t band = block * kBandsOfGatedBlock, bands = std::min(kBandsOfGatedBlock, weight.bands - band);
        const uint32_t count = std::min(kBlock, out.cols - block * kBlock);
        for (uint32_t w = 0; w < width; w += kRowsAtOnce) {
          const uint32_t rows = std::min(kRowsAtOnce, width - w);
          norm_factors(in, eps, w, rows, factors);
          k.product(weight, band, bands, in, w, rows, factors, products, 2 * kBlock);
          for (uint32_t r = 0; r < rows; ++r) {
            float gate[kBlock], up[kBlock], result[kBlock] = {};
            split_pairs(products + size_t{r} * 2 * kBlock, count, gate, up);
            k.gated(function, gate, up, 0, result, count);
            k.write_block(out, w + r, block, result, nullptr);
          }
        }
      },
      kRowsAtOnce * (1 + 2 * kBlock));
}

// ---- mixtures
// ----------------------------------------------------------------------------------------------------------

void Compiler::add(const RouteArgs& args) {
  check_experts(args.experts, "route");
  const ExpertCounts experts = args.experts;
  const uint32_t router_rows = experts.router_rows(), width = args.width;
  require(args.in != nullptr, "route: in is missing.");
  const RowsView in = rows_of(args.in, width, args.in->cols(), "route: in");
  const float* router = elements(args.router, uint64_t{router_rows} * in.cols, "route: router");
  float* logits = elements(args.logits, uint64_t{width} * router_rows, "route: logits");
  uint32_t* chosen = elements<uint32_t>(args.chosen, uint64_t{width} * experts.used, "route: chosen");
  float* shares = elements(args.shares, uint64_t{width} * experts.row_shares(), "route: shares");
  const float* bias = args.bias != nullptr ? elements(args.bias, router_rows, "route: bias") : nullptr;
  const float eps = args.norm_eps;
  const bool of_chosen = args.of_chosen;
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
      [logits, chosen, shares, experts, router_rows, of_chosen](Worker& worker, uint32_t w) {
        const float* own = logits + size_t{w} * router_rows;
        auto* order = reinterpret_cast<uint32_t*>(worker.scratch());
        for (uint32_t e = 0; e < experts.all; ++e) order[e] = e;
        const auto before = [own](uint32_t a, uint32_t b) {
          if (std::isnan(own[a]) || std::isnan(own[b]))
            return std::isnan(own[b]) ? !std::isnan(own[a]) || a < b : false;
          return own[a] != own[b] ? own[a] > own[b] : a < b;
        };
        std::partial_sort(order, order + experts.used, order + experts.all, before);
        double sum = 0;
        for (uint32_t i = 0; of_chosen && i < experts.used; ++i)
          sum += fixed_exp(double{own[order[i]]} - own[order[0]]);
        for (uint32_t e = 0; !of_chosen && e < experts.all; ++e) sum += fixed_exp(double{own[e]} - own[order[0]]);
        for (uint32_t i = 0; i < experts.used; ++i) {
          chosen[size_t{w} * experts.used + i] = order[i];
          shares[size_t{w} * experts.row_shares() + i] =
              static_cast<float>(fixed_exp(double{own[order[i]]} - own[order[0]]) / sum);
        }
        if (experts.shared) {
          shares[size_t{w} * experts.row_shares() + experts.used] =
              static_cast<float>(1 / (1 + fixed_exp(-double{own[experts.all]})));
        }
      },
      experts.all);
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
  const uint64_t lists = PairsByExpert::floats(pairs, all);
  const auto work = [&k = k_, weight, in, out, chosen, bias, eps, limit, rows, used, pairs, all,
                     lists](Worker& worker) {
    const PairsByExpert order(chosen, pairs, all, worker.scratch());
    const ExpertProducts products{weight, in, rows, used, eps};
    uint32_t first = 0, end = 0;
    while (worker.next(all * out.blocks, 1, first, end)) {
      const uint32_t expert = first / out.blocks, block = first % out.blocks;
      const uint32_t start = order.starts[expert], count = order.starts[expert + 1] - start;
      if (count == 0) continue;
      const uint32_t at = block * kBlock, outputs = std::min(kBlock, out.cols - at);
      products.run(k, expert, 2 * at, 2 * outputs, order.pairs + start, count, worker.scratch() + lists,
                   [&](uint32_t pair, float* own) {
                     const float* more = bias != nullptr ? bias + uint64_t{expert} * rows + 2 * at : nullptr;
                     for (uint32_t i = 0; more != nullptr && i < 2 * outputs; ++i) own[i] += more[i];
                     float gate[kBlock], up[kBlock], result[kBlock] = {};
                     split_pairs(own, outputs, gate, up);
                     k.gated(limit > 0 ? 2 : 0, gate, up, limit, result, outputs);
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
  const uint32_t width = args.width, pairs = width * used, all = args.experts.all;
  const uint32_t row_shares = args.experts.row_shares();
  const RowsView in = rows_of(args.in, pairs, weight.cols, "expert_add: in");
  const uint32_t* chosen = elements<uint32_t>(args.chosen, pairs, "expert_add: chosen");
  const float* shares = elements(args.shares, uint64_t{width} * row_shares, "expert_add: shares");
  const float* shared =
      args.experts.shared ? elements(args.shared, uint64_t{width} * rows, "expert_add: shared") : nullptr;
  float* products = elements(args.products, uint64_t{pairs} * rows, "expert_add: products");
  const float* bias = args.bias != nullptr ? elements(args.bias, weight.rows, "expert_add: bias") : nullptr;
  const ResidualOut to = residual_out(args, rows, "expert_add");
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

// ---- heads and attention
// -----------------------------------------------------------------------------------------------

void Compiler::add(const AddBiasArgs& args) {
  float* x = elements(args.x, uint64_t{args.width} * args.cols, "add_bias: x");
  const float* bias = elements(args.bias, args.cols, "add_bias: bias");
  step_of_each(args.width, [x, bias, cols = args.cols](Worker&, uint32_t w) {
    for (uint32_t c = 0; c < cols; ++c) x[size_t{w} * cols + c] += bias[c];
  });
}

/// One head after its norm, if any, and the rotation; angles has (cos, sin) for each pair.
void rotate(const float* head, uint32_t dim, const float* norm, float eps, const float* angles, bool interleaved,
            float* to) {
  float normed[1024];
  if (norm != nullptr) {
    const auto scale = static_cast<float>(1 / std::sqrt(sum_of_squares(head, dim) / dim + double{eps}));
    for (uint32_t d = 0; d < dim; ++d) normed[d] = head[d] * (scale * norm[d]);
    head = normed;
  }
  const uint32_t pairs = dim / 2;
  for (uint32_t i = 0; i < pairs; ++i) {
    const uint32_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + pairs;
    const float cosine = angles[2 * i], sine = angles[2 * i + 1];
    to[a] = head[a] * cosine - head[b] * sine;
    to[b] = head[a] * sine + head[b] * cosine;
  }
}

void Compiler::add(const RopeStoreArgs& args) {
  const uint32_t dim = args.shape.head_dim, kv_heads = args.shape.kv_heads, heads = args.heads;
  require(dim <= 1024, "rope_store: heads of more than 1024 elements.");
  const size_t in_stride = args.elements(), q_stride = size_t{heads} * dim;
  const float* qkv = elements(args.qkv, args.width * in_stride, "rope_store: qkv");
  const Row* rows = elements<Row>(args.rows, args.width, "rope_store: rows");
  const float* rotation = elements(args.rotation, dim, "rope_store: rotation");
  const float* q_norm = args.q_norm != nullptr ? elements(args.q_norm, dim, "rope_store: q norm") : nullptr;
  const float* k_norm = args.k_norm != nullptr ? elements(args.k_norm, dim, "rope_store: k norm") : nullptr;
  float* q = heads > 0 ? elements(args.q, args.width * q_stride, "rope_store: q") : nullptr;
  CpuKv& cache = kv_of(args.cache, args.shape, "rope_store: cache");
  const uint64_t positions = args.rotation->bytes() / sizeof(float) / dim;
  const float eps = args.norm_eps;
  const bool interleaved = args.interleaved;
  const uint32_t slots = args.shape.slots;
  step_of_each(
      args.width,
      [=, &k = k_, &cache](Worker& worker, uint32_t w) {
        const Row& row = rows[w];
        const float* angles = rotation + std::min<uint64_t>(row.position, positions - 1) * dim;
        const float* in = qkv + w * in_stride;
        for (uint32_t h = 0; h < heads; ++h, in += dim) {
          rotate(in, dim, q_norm, eps, angles, interleaved, q + w * q_stride + size_t{h} * dim);
        }
        if (row.slot >= slots) return;
        float* keys = worker.scratch();
        for (uint32_t h = 0; h < kv_heads; ++h, in += dim) {
          rotate(in, dim, k_norm, eps, angles, interleaved, keys + size_t{h} * dim);
        }
        cache.store_keys(k, row.slot, keys);
        cache.store_values(k, row.slot, in);
      },
      uint64_t{kv_heads} * dim);
}

void Compiler::add(const ProjectHeadsArgs& args) {
  for (const Op& op : separate_ops(args)) std::visit([this](const auto& each) { add(each); }, op);
}

/// Positions of its virtual sequence that a row sees: [first, end).
struct Visible {
  uint32_t first = 0, end = 0;
  Visible(const Row& row, bool causal, uint32_t window) {
    if (row.ancestor_count == 0) return;
    end = causal ? row.position + 1 : row.prefix + row.ancestor_count;
    if (window > 0 && row.position + 1 > window) first = row.position + 1 - window;
  }
  /// The same of a page.
  uint32_t first_in(uint32_t page) const { return std::max(first, page * kPage); }
  uint32_t end_in(uint32_t page) const { return std::min(end, (page + 1) * kPage); }
  bool sees(uint32_t page) const { return first_in(page) < end_in(page); }
  uint32_t first_page() const { return first / kPage; }
  uint32_t end_page() const { return (end + kPage - 1) / kPage; }
};

/// What all steps of an attention op know.
struct Attention {
  const float* q;  // [W, heads * dim]
  const Row* rows;
  const uint32_t* ancestors;
  const uint32_t* pages;
  const CpuKv* cache;
  uint32_t heads, group, dim, value_stride, window, page_count, slots;
  uint64_t ancestor_count;
  bool causal;
  float scale, softcap;

  Visible visible(uint32_t w) const { return {rows[w], causal, window}; }
  /// parts: [rows at once, heads, pages, 2 + dim]
  float* part(float* parts, uint32_t r, uint32_t head, uint32_t page) const {
    return parts + ((size_t{r} * heads + head) * page_count + page) * (2 + dim);
  }
  /// The first position that does not lie where the page table has it.
  static uint32_t placed_end(const Row& row) { return row.prefix + row.in_place; }

  uint64_t scratch_floats(uint32_t rows_at_once) const {
    return size_t{kPage} * (dim + value_stride) + size_t{rows_at_once} * group * (sizeof(PageQuery) / sizeof(float));
  }

  /// The parts of all rows [begin, end) of one head of keys in one page.
  void attend(const Kernels& k, uint32_t begin, uint32_t end, uint32_t kv_head, uint32_t page, float* memory,
              float* parts) const {
    PageView view;
    float* keys = memory;
    float* values = keys + size_t{kPage} * dim;
    view.keys = keys;
    view.values = values;
    view.dim = dim;
    view.value_stride = value_stride;
    view.scale = scale;
    view.softcap = softcap;
    auto* queries = reinterpret_cast<PageQuery*>(values + size_t{kPage} * value_stride);
    uint32_t count = 0;
    const auto add = [&](uint32_t w) {
      const Visible own = visible(w);
      for (uint32_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        queries[count++] = {q + (size_t{w} * heads + h) * dim, own.first_in(page) - page * kPage,
                            own.end_in(page) - page * kPage, part(parts, w - begin, h, page)};
      }
    };
    // Rows all of whose keys lie in the page share it; of the others each puts its own ancestors into it.
    bool loaded = false, alone = false;
    uint32_t changed = kPage;  // from here on the page has some row's own ancestors
    const auto load = [&](uint32_t w) {
      const bool needs = page * kPage < std::min(placed_end(rows[w]), visible(w).end);
      if (!needs || loaded) return;
      const uint32_t stored = std::min(pages[page], (slots - 1) / kPage);
      cache->load_keys(k, stored, kv_head, keys);
      cache->load_values(k, stored, kv_head, value_stride, values);
      loaded = true;
    };
    for (uint32_t w = begin; w < end; ++w) {
      const Visible own = visible(w);
      if (!own.sees(page)) continue;
      if (own.end_in(page) > placed_end(rows[w])) {
        alone = true;
        continue;
      }
      load(w);
      add(w);
    }
    if (count > 0) k.attend(view, queries, count);
    for (uint32_t w = begin; alone && w < end; ++w) {
      const Visible own = visible(w);
      const uint32_t placed = std::max(placed_end(rows[w]), page * kPage);
      if (!own.sees(page) || own.end_in(page) <= placed_end(rows[w])) continue;
      if (placed - page * kPage > changed) loaded = false;
      load(w);
      changed = loaded ? std::min(changed, placed - page * kPage) : 0;
      for (uint32_t p = std::max(placed, own.first_in(page)); p < own.end_in(page); ++p) {
        const uint64_t at =
            std::min<uint64_t>(uint64_t{rows[w].first_ancestor} + p - rows[w].prefix, ancestor_count - 1);
        const uint32_t slot = std::min(ancestors[at], slots - 1), place = p - page * kPage;
        cache->load_key(slot, kv_head, kPage, keys + place);
        cache->load_value(slot, kv_head, values + size_t{place} * value_stride);
        std::fill_n(values + size_t{place} * value_stride + dim, value_stride - dim, 0.0f);
      }
      count = 0;
      add(w);
      k.attend(view, queries, count);
    }
  }

  /// A row's result: its parts in the order of the pages.
  void merge(const Kernels& k, uint32_t w, uint32_t r, const float* sinks, float* parts, float* to) const {
    const Visible own = visible(w);
    for (uint32_t h = 0; h < heads; ++h, to += dim) {
      if (own.end <= own.first) {
        std::fill_n(to, dim, 0.0f);
        continue;
      }
      float* sum = part(parts, r, h, own.first_page());
      for (uint32_t page = own.first_page() + 1; page < own.end_page(); ++page)
        k.merge(sum, part(parts, r, h, page), dim);
      k.finish(sum, sinks != nullptr ? sinks[h] : -std::numeric_limits<float>::infinity(), to, dim);
    }
  }
};

uint32_t page_count(uint32_t max_positions) {
  return (max_positions + kPage - 1) / kPage;
}
uint64_t row_part_floats(uint32_t heads, uint32_t dim, uint32_t max_positions) {
  return uint64_t{heads} * page_count(max_positions) * (2 + dim);
}
uint32_t attention_rows_at_once(uint32_t heads, uint32_t dim, uint32_t max_positions, uint32_t width) {
  const uint64_t rows = kAttentionFloats / std::max<uint64_t>(1, row_part_floats(heads, dim, max_positions));
  return static_cast<uint32_t>(std::clamp<uint64_t>(rows, 1, width));
}

void Compiler::add(const AttentionArgs& args) {
  require(args.shape.kv_heads > 0 && args.heads % args.shape.kv_heads == 0,
          "attention: heads are no multiple of the kv heads.");
  require(args.shape.head_dim <= 512, "attention: heads of more than 512 elements.");
  require(args.max_positions > 0, "attention: no positions.");
  Attention a = {};
  a.heads = args.heads;
  a.group = args.heads / args.shape.kv_heads;
  a.dim = args.shape.head_dim;
  a.value_stride = (a.dim + 15) / 16 * 16;
  a.window = args.window;
  a.page_count = page_count(args.max_positions);
  a.slots = args.shape.slots;
  a.causal = args.mask == AttentionMask::causal;
  a.scale = args.scale;
  a.softcap = args.softcap;
  a.q = elements(args.q, uint64_t{args.width} * a.heads * a.dim, "attention: q");
  a.rows = elements<Row>(args.rows, args.width, "attention: rows");
  a.ancestors = elements<uint32_t>(args.ancestors, 1, "attention: ancestors");
  a.ancestor_count = args.ancestors->bytes() / sizeof(uint32_t);
  a.pages = elements<uint32_t>(args.pages, a.page_count, "attention: pages");
  a.cache = &kv_of(args.cache, args.shape, "attention: cache");
  const float* sinks = args.sinks != nullptr ? elements(args.sinks, a.heads, "attention: sinks") : nullptr;
  const RowsView out = rows_of(args.out, args.width, a.heads * a.dim, "attention: out");
  const uint32_t at_once = attention_rows_at_once(a.heads, a.dim, args.max_positions, args.width);
  reserve_common(row_part_floats(a.heads, a.dim, args.max_positions) * at_once);
  const uint32_t kv_heads = args.shape.kv_heads;
  for (uint32_t begin = 0; begin < args.width; begin += at_once) {
    const uint32_t end = std::min(begin + at_once, args.width);
    const auto work = [&k = k_, a, begin, end, kv_heads](Worker& worker) {
      uint32_t first_page = a.page_count, end_page = 0;
      for (uint32_t w = begin; w < end; ++w) {
        const Visible own = a.visible(w);
        if (own.end <= own.first) continue;
        first_page = std::min(first_page, own.first_page());
        end_page = std::max(end_page, std::min(own.end_page(), a.page_count));
      }
      if (first_page >= end_page) return;
      uint32_t unit = 0, next = 0;
      while (worker.next(kv_heads * (end_page - first_page), 1, unit, next)) {
        a.attend(k, begin, end, unit % kv_heads, first_page + unit / kv_heads, worker.scratch(), worker.common());
      }
    };
    plan_.scratch_floats = std::max(plan_.scratch_floats, a.scratch_floats(at_once));
    plan_.steps.push_back({work, false});
    step_of_each(
        end - begin,
        [&k = k_, a, out, sinks, begin](Worker& worker, uint32_t r) {
          float* result = worker.scratch();
          a.merge(k, begin + r, r, sinks, worker.common(), result);
          std::fill_n(result + out.cols, out.blocks * kBlock - out.cols, 0.0f);
          for (uint32_t b = 0; b < out.blocks; ++b)
            k.write_block(out, begin + r, b, result + size_t{b} * kBlock, nullptr);
        },
        uint64_t{out.blocks} * kBlock);
  }
}

void Compiler::add(const KvMoveArgs& args) {
  require(args.count <= kMaxKvMoves, "kv_move: more than 64 moves.");
  require(args.cache != nullptr, "kv_move: no cache.");
  const uint32_t* moves = elements<uint32_t>(args.moves, uint64_t{args.count} * 2, "kv_move: moves");
  std::vector<CpuKv*> layers;
  for (uint32_t i = 0; i < args.cache->layers(); ++i) {
    layers.push_back(&kv_of(&args.cache->layer(i), args.shape, "kv_move: cache"));
  }
  const uint64_t bytes = layers.empty() ? 0 : layers[0]->slot_bytes();
  step_of_each(
      static_cast<uint32_t>(layers.size()),
      [layers, moves, bytes, count = args.count, slots = args.shape.slots](Worker& worker, uint32_t layer) {
        auto* saved = reinterpret_cast<std::byte*>(worker.scratch());
        for (uint32_t i = 0; i < count; ++i) {
          if (moves[2 * i] < slots) layers[layer]->save_slot(moves[2 * i], saved + i * bytes);
        }
        for (uint32_t i = 0; i < count; ++i) {
          if (moves[2 * i] < slots && moves[2 * i + 1] < slots)
            layers[layer]->restore_slot(moves[2 * i + 1], saved + i * bytes);
        }
      },
      (uint64_t{args.count} * bytes + 3) / 4);
}

// ---- logits
// ------------------------------------------------------------------------------------------------------------

void Compiler::add(const ArgmaxArgs& args) {
  const float* logits = elements(args.logits, uint64_t{args.width} * args.vocab, "argmax: logits");
  uint32_t* out = elements<uint32_t>(args.out, (uint64_t{args.first_out} + args.width) * 2, "argmax: out") +
                  size_t{2} * args.first_out;
  static constexpr uint32_t kPiece = 8192;
  const uint32_t vocab = args.vocab, pieces = (vocab + kPiece - 1) / kPiece, width = args.width;
  reserve_common(uint64_t{width} * pieces);  // the id of each piece's largest
  step_of_each(width * pieces, [&k = k_, logits, vocab, pieces](Worker& worker, uint32_t unit) {
    const uint32_t w = unit / pieces, first = unit % pieces * kPiece, count = std::min(kPiece, vocab - first);
    const uint32_t at = k.largest(logits + size_t{w} * vocab + first, count);
    reinterpret_cast<uint32_t*>(worker.common())[unit] = at < count ? first + at : kNoToken;
  });
  step_of_each(width, [logits, out, vocab, pieces](Worker& worker, uint32_t w) {
    const auto* best = reinterpret_cast<const uint32_t*>(worker.common());
    uint32_t id = kNoToken;
    for (uint32_t p = 0; p < pieces; ++p) {
      const uint32_t other = best[w * pieces + p];
      if (other == kNoToken) continue;
      if (id == kNoToken || logits[size_t{w} * vocab + other] > logits[size_t{w} * vocab + id]) id = other;
    }
    const float value = id == kNoToken ? std::numeric_limits<float>::quiet_NaN() : logits[size_t{w} * vocab + id];
    out[2 * w] = id;
    out[2 * w + 1] = std::bit_cast<uint32_t>(value);
  });
}

void Compiler::add(const TopKArgs& args) {
  require(args.k >= 1 && args.k <= kMaxTopK && args.k <= args.vocab, "top_k: k lies outside 1 to min(64, vocab).");
  require(std::isfinite(args.multiplier) && args.multiplier != 0, "top_k: the multiplier is 0 or not finite.");
  require(std::isfinite(args.softcap) && args.softcap >= 0, "top_k: the softcap is negative or not finite.");
  const float* logits = elements(args.logits, uint64_t{args.width} * args.vocab, "top_k: logits");
  const uint64_t end = uint64_t{args.first_out} + args.width;
  uint32_t* ids = elements<uint32_t>(args.ids, end * args.k, "top_k: ids") + size_t{args.first_out} * args.k;
  float* values = elements(args.values, end * args.k, "top_k: values") + size_t{args.first_out} * args.k;
  float* sums = elements(args.log_sum_exp, end, "top_k: log_sum_exp") + args.first_out;
  step_of_each(args.width, [&k = k_, logits, ids, values, sums, vocab = args.vocab, most = args.k,
                            multiplier = args.multiplier, softcap = args.softcap](Worker&, uint32_t w) {
    k.top_k(logits + size_t{w} * vocab, vocab, most, multiplier, softcap,
            {ids + size_t{w} * most, values + size_t{w} * most, sums + w});
  });
}

void Compiler::add(const SampleArgs& args) {
  float* logits = elements(args.logits, uint64_t{args.width} * args.vocab, "sample: logits");
  const uint64_t end = uint64_t{args.first_row} + args.width;
  const SamplingWords* settings = elements<SamplingWords>(args.settings, 1, "sample: settings");
  const SampledRow* rows = elements<SampledRow>(args.rows, end, "sample: rows");
  uint32_t* out = elements<uint32_t>(args.out, end, "sample: out");
  const TokenAdjustment* table =
      args.adjustments != nullptr
          ? elements<TokenAdjustment>(args.adjustments, args.most_adjustments, "sample: adjustments")
          : nullptr;
  const auto work = [=, vocab = args.vocab, first_row = args.first_row, most = args.most_adjustments](Worker&,
                                                                                                      uint32_t w) {
    if (rows[first_row + w].token == kNoToken) {
      out[first_row + w] = kNoToken;
      return;
    }
    SamplingWords words = *settings;
    std::vector<TokenAdjustment> adjustments;
    if (table != nullptr) adjustments.assign(table, table + std::min(words.adjustments, most));
    for (uint32_t row = first_row + w; rows[row].parent < row; row = rows[row].parent) {
      ++words.position;
      if (table == nullptr) continue;
      const auto entry = std::ranges::find(adjustments, rows[row].token, &TokenAdjustment::token);
      if (entry != adjustments.end()) {
        ++entry->count;
      } else {
        adjustments.push_back({rows[row].token, 1, 0});
      }
    }
    RowSampler sampler;
    float* row = logits + size_t{w} * vocab;
    out[first_row + w] = sampler.draw({row, vocab}, words, adjustments);
    for (const TokenAdjustment& entry : adjustments) row[entry.token] = sampler.adjusted()[entry.token];
  };
  step_of_each(args.width, work);
}

void Compiler::add(const PickArgs& args) {
  const float* logits = elements(args.logits, uint64_t{args.rows} * args.vocab, "pick: logits");
  const uint32_t* pairs = elements<uint32_t>(args.pairs, uint64_t{args.count} * 2, "pick: pairs");
  float* out = elements(args.out, args.count, "pick: out");
  step_of_each(
      1, [=, count = args.count, first = args.first_row, rows = args.rows, vocab = args.vocab](Worker&, uint32_t) {
        for (uint32_t i = 0; i < count; ++i) {
          const uint32_t row = pairs[2 * i] - first, token = pairs[2 * i + 1];
          if (pairs[2 * i] >= first && row < rows && token < vocab) out[i] = logits[size_t{row} * vocab + token];
        }
      });
}

void Compiler::add(const CopyRowsArgs& args) {
  require(args.in != args.out, "copy_rows: in and out are the same buffer.");
  const uint32_t* moves = elements<uint32_t>(args.moves, uint64_t{args.count} * 2, "copy_rows: moves");
  const float* in = elements(args.in, 0, "copy_rows: in");
  float* out = elements(args.out, 0, "copy_rows: out");
  const uint64_t row = uint64_t{args.cols} * sizeof(float), in_rows = args.in->bytes() / row,
                 out_rows = args.out->bytes() / row;
  step_of_each(1, [=, count = args.count, cols = args.cols](Worker&, uint32_t) {
    for (uint32_t i = 0; i < count; ++i) {
      const size_t from = moves[2 * i], to = moves[2 * i + 1];
      if (from < in_rows && to < out_rows) std::copy_n(in + from * cols, cols, out + to * cols);
    }
  });
}

void Compiler::add(const CapLogitsArgs& args) {
  require(args.cap > 0, "cap_logits: the cap is not positive.");
  float* logits = elements(args.logits, uint64_t{args.width} * args.vocab, "cap_logits: logits");
  static constexpr uint32_t kPiece = 4096;
  const uint64_t count = uint64_t{args.width} * args.vocab;
  step_of_each(static_cast<uint32_t>((count + kPiece - 1) / kPiece),
               [&k = k_, logits, count, cap = args.cap](Worker&, uint32_t unit) {
                 const uint64_t first = uint64_t{unit} * kPiece;
                 k.cap(logits + first, std::min<uint64_t>(kPiece, count - first), 1, cap);
               });
}

// ---- recurrences
// -------------------------------------------------------------------------------------------------------

void Compiler::add(const DeltaInputsArgs& args) {
  check_delta_shape(args.shape, "delta_inputs");
  const DeltaShape shape = args.shape;
  const uint32_t size = shape.row_elements(), channels = shape.channels(), heads = shape.value_heads;
  const float* in = elements(args.in, uint64_t{args.rows} * size, "delta_inputs: in");
  const DeltaStep* steps = elements<DeltaStep>(args.steps, args.width, "delta_inputs: steps");
  float* out = elements(args.out, uint64_t{args.rows} * size, "delta_inputs: out");
  const float* taps = elements(args.taps, uint64_t{channels} * shape.taps, "delta_inputs: taps");
  const float* bias = elements(args.bias, heads, "delta_inputs: bias");
  const float* rate = elements(args.rate, heads, "delta_inputs: rate");
  float* tails = elements(args.tails, shape.tail_elements(), "delta_inputs: tails");
  const uint64_t tail_size = shape.tail_elements(), kept = args.tails->bytes() / sizeof(float) / tail_size;
  const auto work = [=, &k = k_, rows = args.rows](Worker& worker, uint32_t i) {
    const DeltaStep& step = steps[i];
    if (step.row >= rows) return;
    // The inputs of the row and of the taps - 1 before it, oldest first.
    const float* window[DeltaShape::kMostTaps];
    uint32_t at = i, last = i, beyond = 0;
    for (uint32_t t = shape.taps; t-- > 0;) {
      if (at != DeltaStep::kNone) {
        window[t] = in + size_t{std::min(steps[at].row, rows - 1)} * size;
        last = at;
        at = steps[at].parent < at ? steps[at].parent : DeltaStep::kNone;
      } else {
        window[t] = tails + std::min<uint64_t>(steps[last].from, kept - 1) * tail_size +
                    size_t{shape.taps - 2 - beyond++} * channels;
      }
    }
    float* to = out + size_t{step.row} * size;
    for (uint32_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (uint32_t t = 0; t < shape.taps; ++t) sum += taps[size_t{c} * shape.taps + t] * window[t][c];
      to[c] = sum;
    }
    k.silu(to, channels);
    const double query_scale = 1 / std::sqrt(static_cast<double>(shape.key_dim));
    for (uint32_t h = 0; h < 2 * shape.key_heads; ++h) {
      float* head = to + size_t{h} * shape.key_dim;
      const double norm = 1 / std::sqrt(sum_of_squares(head, shape.key_dim) + double{DeltaInputsArgs::kEps});
      const auto scale = static_cast<float>(h < shape.key_heads ? norm * query_scale : norm);
      for (uint32_t d = 0; d < shape.key_dim; ++d) head[d] *= scale;
    }
    const float* gates = window[shape.taps - 1] + channels;
    for (uint32_t h = 0; h < heads; ++h) {
      to[channels + h] = static_cast<float>(1 / (1 + fixed_exp(-double{gates[h]})));
      const double soft = fixed_softplus(double{gates[heads + h]} + double{bias[h]});
      to[channels + heads + h] = static_cast<float>(fixed_exp(rate[h] * soft));
    }
    if (step.to >= kept) return;  // keeps nothing
    // Gathered before it is written: the window may lie in the same memory.
    float* tail = worker.scratch();
    for (uint32_t t = 1; t < shape.taps; ++t) std::copy_n(window[t], channels, tail + size_t{t - 1} * channels);
    std::copy_n(tail, tail_size, tails + step.to * tail_size);
  };
  step_of_each(args.width, work, tail_size);
}

void Compiler::add(const DeltaNetArgs& args) {
  check_delta_shape(args.shape, "delta_net");
  const DeltaShape shape = args.shape;
  const uint32_t size = shape.row_elements(), channels = shape.channels(), dim = shape.value_dim;
  const uint64_t state_size = shape.state_elements();
  const float* in = elements(args.in, uint64_t{args.rows} * size, "delta_net: in");
  const DeltaStep* steps = elements<DeltaStep>(args.steps, args.width, "delta_net: steps");
  float* out =
      args.out != nullptr ? elements(args.out, uint64_t{args.rows} * shape.values(), "delta_net: out") : nullptr;
  float* states = elements(args.states, 0, "delta_net: states");
  float* spare = args.spare != nullptr ? elements(args.spare, 0, "delta_net: spare") : nullptr;
  const uint64_t kept = args.states->bytes() / sizeof(float) / state_size;
  const uint64_t spares = args.spare != nullptr ? args.spare->bytes() / sizeof(float) / state_size : 0;
  const uint32_t groups = (dim + 15) / 16;  // of columns, each of which is a recurrence of its own
  const auto work = [=, &k = k_, rows = args.rows, width = args.width](Worker& worker, uint32_t unit) {
    const uint32_t h = unit / groups, column = unit % groups * 16, lanes = std::min(16u, dim - column);
    float* state = worker.scratch();  // [key_dim, 16]
    std::fill_n(state, size_t{shape.key_dim} * 16, 0.0f);
    const uint64_t head = uint64_t{h} * shape.key_dim * dim + column;
    const auto place = [&](uint32_t at) -> float* {
      const uint64_t index = at & ~DeltaStep::kSpare;
      if ((at & DeltaStep::kSpare) != 0) return index < spares ? spare + index * state_size + head : nullptr;
      return index < kept ? states + index * state_size + head : nullptr;
    };
    for (uint32_t s = 0; s < width; ++s) {
      const DeltaStep& step = steps[s];
      if (step.row >= rows) continue;
      if (step.from != DeltaStep::kNone) {
        const float* from = place(step.from);
        for (uint32_t i = 0; from != nullptr && i < shape.key_dim; ++i)
          std::copy_n(from + size_t{i} * dim, lanes, state + 16 * i);
      }
      const float* row = in + size_t{step.row} * size;
      const float* key = row + size_t{shape.key_head(h)} * shape.key_dim;
      float value[16] = {}, result[16];
      std::copy_n(row + 2 * size_t{shape.keys()} + size_t{h} * dim + column, lanes, value);
      k.delta_step(state, shape.key_dim, key, key + shape.keys(), value, row[channels + h],
                   row[channels + shape.value_heads + h], out != nullptr ? result : nullptr);
      if (out != nullptr)
        std::copy_n(result, lanes, out + uint64_t{step.row} * shape.values() + size_t{h} * dim + column);
      if (step.to == DeltaStep::kNone) continue;
      float* to = place(step.to);
      for (uint32_t i = 0; to != nullptr && i < shape.key_dim; ++i)
        std::copy_n(state + 16 * i, lanes, to + size_t{i} * dim);
    }
  };
  step_of_each(shape.value_heads * groups, work, uint64_t{shape.key_dim} * 16);
}

}  // namespace

void add_steps(const Op& op, const Kernels& kernels, uint32_t threads, Plan& plan) {
  const size_t first = plan.steps.size();
  Compiler compiler(kernels, threads, plan);
  std::visit([&](const auto& args) { compiler.add(args); }, op);
  if (first < plan.steps.size()) plan.steps[first].starts_op = true;
}

uint64_t attention_bytes(const KvShape& shape, uint32_t heads, uint32_t max_width, uint32_t max_positions) {
  const uint32_t rows = attention_rows_at_once(heads, shape.head_dim, max_positions, std::max(1u, max_width));
  return row_part_floats(heads, shape.head_dim, max_positions) * rows * sizeof(float);
}

}  // namespace canopy::cpu
