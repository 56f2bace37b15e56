#include "engine/cpu/steps.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "engine/compute/rows.h"
#include "engine/compute/sampling.h"
#include "engine/cpu/fixed_math.h"
#include "engine/cpu/packing.h"

namespace canopy::cpu {
namespace {

// Bands whose outputs fill a block of activations: as they are, and as pairs of gate and up.
constexpr uint32_t kBandsOfBlock = 2, kBandsOfGatedBlock = 4;

}  // namespace

// ---- rows of activations ------------------------------------------------------------------------------------------

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

void ResidualOut::store(const Kernels& k, uint32_t row, uint32_t block, const float* values, uint32_t count) const {
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
  const float eps = args.eps, x_scale = args.x_scale;
  step_of_each(args.width, [&k = k_, to, in, weight, cols, eps, x_scale](Worker&, uint32_t w) {
    const float* row = in + size_t{w} * cols;
    const auto factor = static_cast<float>(1 / std::sqrt(sum_of_squares(row, cols) / cols + double{eps}));
    for (uint32_t c = 0; c < cols; c += kBlock) {
      float x[kBlock];
      const uint32_t count = std::min(kBlock, cols - c);
      for (uint32_t i = 0; i < count; ++i) x[i] = to.x[size_t{w} * cols + c + i] + row[c + i] * factor * weight[c + i];
      for (uint32_t i = 0; x_scale != 1 && i < count; ++i) x[i] *= x_scale;
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

namespace {

/// Changes blocks of activations in place.
template <class Change>
void change_block(const Kernels& k, const RowsView& rows, uint32_t row, uint32_t block, Change change) {
  float values[kBlock] = {};
  const uint32_t count = std::min(kBlock, rows.cols - block * kBlock);
  std::copy_n(rows.values + (size_t{row} * rows.blocks + block) * kBlock, count, values);
  change(values, count);
  k.write_block(rows, row, block, values, nullptr);
}

}  // namespace

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

void Compiler::add(const GateInputsArgs& args) {
  require(args.out != nullptr, "gate_inputs: out is missing.");
  const uint32_t cols = args.out->cols(), stride = args.stride;
  require(uint64_t{args.offset} + cols <= stride, "gate_inputs: offset + columns exceed the stride.");
  const RowsView out = rows_of(args.out, args.width, cols, "gate_inputs: out");
  const float* gate = elements(args.gate, uint64_t{args.width} * cols, "gate_inputs: gate");
  const float* inputs = elements(args.inputs, uint64_t{args.width} * stride, "gate_inputs: inputs") + args.offset;
  const float scale = args.scale;
  step_of_each(args.width * out.blocks, [&k = k_, out, gate, inputs, cols, stride, scale](Worker&, uint32_t unit) {
    const uint32_t w = unit / out.blocks, begin = unit % out.blocks * kBlock, count = std::min(kBlock, cols - begin);
    float gates[kBlock] = {}, opened[kBlock] = {}, result[kBlock] = {};
    for (uint32_t i = 0; i < count; ++i) {
      gates[i] = scale * gate[size_t{w} * cols + begin + i];
      opened[i] = inputs[size_t{w} * stride + begin + i];
    }
    k.gated(1, gates, opened, 0, result, count);
    k.write_block(out, w, begin / kBlock, result, nullptr);
  });
}

void Compiler::add(const SquareReluArgs& args) {
  require(args.out != nullptr, "square_relu: out is missing.");
  const uint32_t cols = args.out->cols();
  const RowsView out = rows_of(args.out, args.width, cols, "square_relu: out");
  const float* in = elements(args.in, uint64_t{args.width} * cols, "square_relu: in");
  step_of_each(args.width * out.blocks, [&k = k_, out, in, cols](Worker&, uint32_t unit) {
    const uint32_t w = unit / out.blocks, begin = unit % out.blocks * kBlock, count = std::min(kBlock, cols - begin);
    float result[kBlock] = {};
    for (uint32_t i = 0; i < count; ++i) {
      const float x = in[size_t{w} * cols + begin + i];
      result[i] = x <= 0 ? 0 : x * x;
    }
    k.write_block(out, w, begin / kBlock, result, nullptr);
  });
}

void Compiler::add(const GatedNormArgs& args) {
  const uint32_t cols = args.heads * args.head_dim, dim = args.head_dim;
  const float* in = elements(args.in, uint64_t{args.width} * cols, "gated_norm: in");
  const float* gate = elements(args.gate, uint64_t{args.width} * cols, "gated_norm: gate");
  const float* weight = elements(args.weight, args.weights(), "gated_norm: weight");
  const RowsView out = rows_of(args.out, args.width, cols, "gated_norm: out");
  const float eps = args.eps;
  step_of_each(
      args.width,
      [&k = k_, in, gate, weight, out, eps, cols, dim, within = args.gate_within](Worker& worker, uint32_t w) {
        float* open = worker.scratch();
        float* result = open + cols;
        std::copy_n(gate + size_t{w} * cols, cols, open);
        k.silu(open, cols);
        for (uint32_t h = 0; within && h < cols; h += dim) {
          for (uint32_t d = h; d < h + dim; ++d) result[d] = in[size_t{w} * cols + d] * open[d];
          const auto scale = static_cast<float>(1 / std::sqrt(sum_of_squares(result + h, dim) / dim + double{eps}));
          for (uint32_t d = h; d < h + dim; ++d) result[d] = result[d] * scale * weight[d];
        }
        for (uint32_t h = 0; !within && h < cols; h += dim) {
          const float* head = in + size_t{w} * cols + h;
          const auto scale = static_cast<float>(1 / std::sqrt(sum_of_squares(head, dim) / dim + double{eps}));
          for (uint32_t d = 0; d < dim; ++d) result[h + d] = head[d] * scale * weight[d] * open[h + d];
        }
        std::fill_n(result + cols, out.blocks * kBlock - cols, 0.0f);
        for (uint32_t b = 0; b < out.blocks; ++b) k.write_block(out, w, b, result + size_t{b} * kBlock, nullptr);
      },
      2 * uint64_t{cols} + kBlock);
}

// ---- products -----------------------------------------------------------------------------------------------------

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
        const Reading reading(worker, (end - first) * weight.band_bytes);
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
        const Reading reading(worker, bands * weight.band_bytes);
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
        const Reading reading(worker, bands * weight.band_bytes);
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

void Compiler::add(const AddBiasArgs& args) {
  float* x = elements(args.x, uint64_t{args.width} * args.cols, "add_bias: x");
  const float* bias = elements(args.bias, args.cols, "add_bias: bias");
  step_of_each(args.width, [x, bias, cols = args.cols](Worker&, uint32_t w) {
    for (uint32_t c = 0; c < cols; ++c) x[size_t{w} * cols + c] += bias[c];
  });
}

void Compiler::add(const ProjectHeadsArgs& args) {
  for (const Op& op : separate_ops(args)) std::visit([this](const auto& each) { add(each); }, op);
}

// ---- logits -------------------------------------------------------------------------------------------------------

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
    float* own = values + size_t{w} * most;
    const float sum =
        k.top_k(logits + size_t{w} * vocab, vocab, most, multiplier, softcap, {ids + size_t{w} * most, own});
    // An infinite largest: nothing but -inf, or a +inf that outweighs the rest.
    sums[w] = std::isinf(own[0]) ? own[0] : static_cast<float>(double{own[0]} + fixed_log(double{sum}));
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

void Compiler::add(const ConvRowsArgs& args) {
  check_conv_rows(args);
  const uint32_t cols = args.cols, taps = args.taps, group = args.group, groups = args.groups(), side = args.side;
  const float* in = elements(args.in, uint64_t{args.width} * cols, "conv_rows: in");
  const float* base = elements(args.base, uint64_t{2} * taps * cols, "conv_rows: base") + size_t{side} * taps * cols;
  const float* kernel = elements(args.kernel, uint64_t{args.width} * args.kernel_cols(), "conv_rows: kernel") +
                        size_t{side} * taps * groups;
  float* x = elements(args.x, uint64_t{args.width} * cols, "conv_rows: x");
  step_of_each(args.width, [=, stride = args.kernel_cols()](Worker&, uint32_t w) {
    for (uint32_t j = 0; j < taps && j <= w; ++j) {
      for (uint32_t c = 0; c < cols; ++c) {
        const float factor = base[size_t{j} * cols + c] + kernel[size_t{w} * stride + size_t{j} * groups + c / group];
        x[size_t{w} * cols + c] += factor * in[size_t{w - j} * cols + c];
      }
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

void add_steps(const Op& op, const Kernels& kernels, uint32_t threads, Plan& plan) {
  const size_t first = plan.steps.size();
  Compiler compiler(kernels, threads, plan);
  std::visit([&](const auto& args) { compiler.add(args); }, op);
  if (first < plan.steps.size()) plan.steps[first].starts_op = true;
}

}  // namespace canopy::cpu
