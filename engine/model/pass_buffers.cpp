#include "engine/model/pass_buffers.h"

#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/compute/ops.h"
#include "engine/compute/rows.h"
#include "engine/model/rotation.h"

namespace canopy {
namespace {

constexpr uint64_t kWord = sizeof(uint32_t);

/// The sums of probabilities come with the largest logit: an argmax beside them would read the logits once more.
uint64_t best_bytes(const PassShape& shape) {
  return shape.head == HeadOutput::argmax && top_tokens(shape) == 0 ? shape.head_rows * 2 * kWord : 0;
}

uint64_t likeliest_bytes(const PassShape& shape) {
  const bool read = shape.head == HeadOutput::argmax || shape.likeliest;
  return read ? uint64_t{shape.head_rows} * top_tokens(shape) * kWord : 0;
}

uint64_t likeliest_logit_bytes(const PassShape& shape) {
  return shape.head == HeadOutput::argmax ? uint64_t{shape.head_rows} * top_tokens(shape) * kWord : 0;
}

bool is_sampled(const PassShape& shape) {
  return shape.head == HeadOutput::sampled;
}

uint64_t drawn_bytes(const PassShape& shape) {
  return is_sampled(shape) ? shape.head_rows * kWord : 0;
}

uint64_t sampled_row_bytes(const PassShape& shape) {
  return is_sampled(shape) ? shape.head_rows * sizeof(SampledRow) : 0;
}

uint64_t adjustment_bytes(const PassShape& shape) {
  return shape.adjustments * sizeof(TokenAdjustment);
}

uint64_t step_bytes(const PassShape& shape) {
  return shape.recurrent && !shape.head_only ? shape.width * sizeof(DeltaStep) : 0;
}

uint64_t sum_bytes(const PassShape& shape) {
  return shape.probabilities ? shape.head_rows * kWord : 0;
}

/// The shape that needs most with this head.
PassShape largest(const ModelLimits& limits, HeadOutput head) {
  PassShape shape;
  shape.width = limits.rows();
  shape.max_positions = limits.context;
  shape.head = head;
  shape.head_rows = limits.rows();
  shape.probabilities = shape.likeliest = true;
  shape.token_logits = limits.max_token_logits();
  shape.recurrent = limits.states > 0;
  if (head == HeadOutput::sampled) shape.adjustments = limits.max_adjustments();
  return shape;
}

}  // namespace

uint32_t top_tokens(const PassShape& shape) {
  if (shape.likeliest) return kLikeliest;
  return shape.probabilities ? 1 : 0;
}

PassLayout::PassLayout(const PassShape& shape) {
  Packing input;
  rows = input.add(shape.head_only ? 0 : shape.width * sizeof(Row));
  head_rows = input.add(shape.head_rows * kWord);
  token_logit_pairs = input.add(shape.token_logits * 2 * kWord);
  sampling = input.add(is_sampled(shape) ? sizeof(SamplingWords) : 0);
  sampled_rows = input.add(sampled_row_bytes(shape));
  adjustments = input.add(adjustment_bytes(shape));
  pages = input.add(shape.head_only ? 0 : pages_for(shape.max_positions) * kWord);
  steps = input.add(step_bytes(shape));
  ancestors = input.add(0);
  Packing results;
  best = results.add(best_bytes(shape));
  likeliest = results.add(likeliest_bytes(shape));
  likeliest_logits = results.add(likeliest_logit_bytes(shape));
  drawn = results.add(drawn_bytes(shape));
  log_sum_exp = results.add(sum_bytes(shape));
  token_logits = results.add(shape.token_logits * kWord);
  distinct_experts = results.add(shape.expert_layers * kWord);
  result_bytes = results.end();
}

uint32_t page_entry(std::span<const uint32_t> pages, size_t i) {
  if (pages.empty()) return static_cast<uint32_t>(i);
  return i < pages.size() ? pages[i] : 0;
}

PassParts make_pass_parts(Device& device, const PassBuffers& buffers, const PassShape& shape) {
  const PassLayout layout(shape);
  const auto part = [&device](Buffer& whole, uint64_t offset, uint64_t bytes, const char* name) {
    return bytes == 0 ? nullptr : device.part(whole, offset, bytes, name);
  };
  Buffer& input = *buffers.input;
  Buffer& results = *buffers.results;
  PassParts parts;
  if (!shape.head_only) {
    parts.rows = part(input, layout.rows, shape.width * sizeof(Row), "rows");
    parts.pages = part(input, layout.pages, pages_for(shape.max_positions) * kWord, "page table");
    parts.ancestors = part(input, layout.ancestors, shape.width * kMostAncestors * kWord, "ancestors");
  }
  parts.steps = part(input, layout.steps, step_bytes(shape), "steps of recurrences");
  parts.head_rows = part(input, layout.head_rows, shape.head_rows * kWord, "head rows");
  parts.token_logit_pairs = part(input, layout.token_logit_pairs, shape.token_logits * 2 * kWord, "wanted logits");
  if (is_sampled(shape)) parts.sampling = part(input, layout.sampling, sizeof(SamplingWords), "sampling");
  parts.sampled_rows = part(input, layout.sampled_rows, sampled_row_bytes(shape), "sampled rows");
  parts.adjustments = part(input, layout.adjustments, adjustment_bytes(shape), "adjustments");
  parts.drawn = part(results, layout.drawn, drawn_bytes(shape), "drawn tokens");
  parts.best = part(results, layout.best, best_bytes(shape), "best");
  parts.likeliest = part(results, layout.likeliest, likeliest_bytes(shape), "likeliest tokens");
  parts.likeliest_logits = part(results, layout.likeliest_logits, likeliest_logit_bytes(shape), "their logits");
  parts.log_sum_exp = part(results, layout.log_sum_exp, sum_bytes(shape), "log sum exp");
  parts.distinct_experts =
      part(results, layout.distinct_experts, shape.expert_layers * kWord, "numbers of distinct experts");
  parts.token_logits = part(results, layout.token_logits, shape.token_logits * kWord, "token logits");
  return parts;
}

uint64_t pass_input_bytes(const ModelLimits& limits) {
  return PassLayout(largest(limits, HeadOutput::sampled)).ancestors + uint64_t{limits.rows()} * kMostAncestors * kWord;
}

uint64_t pass_result_bytes(const ModelConfig& config, const ModelLimits& limits) {
  PassShape shape = largest(limits, HeadOutput::argmax);
  shape.expert_layers = config.layers_with_experts();
  return PassLayout(shape).result_bytes;
}

uint64_t touched_words(const ModelConfig& config) {
  return uint64_t{config.layers_with_experts()} * ExpertCounts{config.experts}.touched_words();
}

void forget_touched_experts(Device& device, const ModelConfig& config, const PassBuffers& buffers) {
  if (!buffers.touched_experts) return;
  const std::vector<uint32_t> none(touched_words(config));
  device.write(*buffers.touched_experts, 0, as_bytes_of(none));
}

namespace {

void allocate_expert_buffers(Device& device, const ModelConfig& config, const ModelLimits& limits, PassBuffers& b) {
  const uint64_t width = limits.rows(), used = config.experts_used, shared = config.shared_ffn != 0 ? 1 : 0;
  b.touched_experts = device.allocate(touched_words(config) * kWord, "touched experts");
  forget_touched_experts(device, config, b);
  b.expert_logits = device.allocate(width * (config.experts + shared) * sizeof(float), "expert logits");
  b.chosen_experts = device.allocate(width * used * kWord, "chosen experts");
  b.expert_shares = device.allocate(width * (used + shared) * sizeof(float), "expert shares");
  b.expert_gated = device.allocate_activations(limits.rows() * config.experts_used, config.expert_ffn, "gated experts");
  b.expert_products = device.allocate(width * used * config.hidden * sizeof(float), "expert products");
  if (shared == 0) return;
  b.shared_gated = device.allocate_activations(limits.rows(), config.shared_ffn, "gated shared expert");
  b.shared_product = device.allocate(width * config.hidden * sizeof(float), "product of the shared expert");
}

}  // namespace

namespace {

void allocate_layer_inputs(Device& device, const ModelConfig& config, const ModelLimits& limits, PassBuffers& b) {
  const uint64_t width = limits.rows();
  const uint32_t each = config.layer_inputs, all = config.layers * each;
  b.layer_inputs = device.allocate(width * all * sizeof(float), "inputs of layers");
  b.layer_products = device.allocate(width * all * sizeof(float), "products for inputs of layers");
  b.layer_gate = device.allocate(width * each * sizeof(float), "gates of a layer's inputs");
  b.looked_up_inputs = device.allocate_activations(limits.rows(), all, "embeddings of layers");
  b.normed_inputs = device.allocate_activations(limits.rows() * config.layers, each, "normed inputs of layers");
  b.gated_inputs = device.allocate_activations(limits.rows(), each, "gated inputs of a layer");
}

void allocate_zeros(Device& device, const ModelConfig& config, const ModelLimits& limits, PassBuffers& b) {
  b.zeros = device.allocate(config.hidden * sizeof(float), "zeros");
  std::vector<uint32_t> moves;
  for (uint32_t w = 0; w < limits.rows(); ++w) moves.insert(moves.end(), {0u, w});
  b.from_zeros = device.allocate(moves.size() * kWord, "copies of zeros");
  device.write(*b.from_zeros, 0, as_bytes_of(moves));
}

void allocate_sums(Device& device, const ModelConfig& config, const ModelLimits& limits, PassBuffers& b) {
  const uint64_t width = limits.rows(), row = config.hidden * sizeof(float);
  b.both = device.allocate(width * row, "sum of feed-forward and experts");
  b.expert_sum = device.allocate(width * row, "sum of experts");
  allocate_zeros(device, config, limits, b);
}

/// Of feed-forwards and experts without gates.
void allocate_ungated(Device& device, const ModelConfig& config, const ModelLimits& limits, PassBuffers& b) {
  const uint64_t width = limits.rows(), row = config.hidden * sizeof(float);
  b.upper = device.allocate(width * ungated_width(config) * sizeof(float), "products of feed-forwards");
  if (config.layers_with_experts() == 0) return;
  const uint32_t used = config.experts_used, pairs = limits.rows() * used;
  allocate_zeros(device, config, limits, b);
  b.normed_rows = device.allocate(width * row, "normed rows");
  b.unread_rows = device.allocate_activations(limits.rows(), config.hidden, "unread rows");
  b.pair_rows = device.allocate(pairs * row, "rows of pairs");
  b.pairs = device.allocate_activations(pairs, config.hidden, "rows of pairs");
  b.expert_upper = device.allocate(uint64_t{pairs} * config.expert_ffn * sizeof(float), "products of experts");
  std::vector<uint32_t> moves;
  for (uint32_t pair = 0; pair < pairs; ++pair) moves.insert(moves.end(), {pair / used, pair});
  b.to_pairs = device.allocate(moves.size() * kWord, "copies to pairs");
  device.write(*b.to_pairs, 0, as_bytes_of(moves));
}

}  // namespace

uint32_t latent_piece(const ModelConfig& config) {
  return std::gcd(config.latent.rank, config.rotary_dim);
}

namespace {

/// For each of `rows` rows the moves of its `count` pieces, from behind each other to rows of `stride` pieces, where
/// they are the ones from `first` on.
std::vector<uint32_t> moves_of_pieces(uint32_t rows, uint32_t count, uint32_t stride, uint32_t first) {
  std::vector<uint32_t> moves;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t i = 0; i < count; ++i) moves.insert(moves.end(), {row * count + i, row * stride + first + i});
  }
  return moves;
}

LatentBuffers allocate_latent_buffers(Device& device, const ModelConfig& config, const ModelLimits& limits) {
  const LatentAttention& latent = config.latent;
  const uint32_t width = limits.rows(), heads = config.heads, pairs = width * heads, turned = config.rotary_dim;
  const auto floats = [&](uint64_t rows, uint64_t cols, const char* name) {
    return device.allocate(rows * cols * sizeof(float), name);
  };
  const auto constant = [&](const auto& values, const char* name) {
    auto buffer = device.allocate(values.size() * kWord, name);
    device.write(*buffer, 0, as_bytes_of(values));
    return buffer;
  };
  LatentBuffers b;
  if (latent.query_rank != 0) {
    b.query_latent = floats(width, latent.query_rank, "latents of queries");
    b.normed_query_latent = device.allocate_activations(width, latent.query_rank, "normed latents of queries");
  }
  b.query_keys = floats(pairs, latent.key_dim, "queries for keys");
  b.query_key_rows = device.allocate_activations(pairs, latent.key_dim, "rows of queries for keys");
  b.query_turned = floats(pairs, turned, "turned parts of queries");
  b.latent = floats(width, latent.rank, "latents");
  b.normed_latent = floats(width, latent.rank, "normed latents");
  b.spare = device.allocate_activations(width, latent.rank, "spare latents");
  b.keys = floats(width, config.head_dim, "keys of latents");
  b.head_rows = device.allocate(uint64_t{pairs} * sizeof(Row), "rows of heads");
  b.attended = device.allocate_activations(pairs, latent.rank, "attended latents");
  b.values = floats(pairs, latent.value_dim, "values of heads");
  b.head_values = device.allocate_activations(width, heads * latent.value_dim, "values of all heads");
  b.ones = constant(std::vector<float>(latent.rank, 1), "ones");
  b.zeros = constant(std::vector<float>(latent.rank, 0), "zeros");
  std::vector<uint32_t> from_zeros, head_of, rows_of_heads;
  for (uint32_t w = 0; w < width; ++w) {
    from_zeros.insert(from_zeros.end(), {0u, w});
    for (uint32_t h = 0; h < heads; ++h) {
      head_of.push_back(h);
      rows_of_heads.insert(rows_of_heads.end(), {w, w * heads + h});
    }
  }
  b.from_zeros = constant(from_zeros, "copies of zeros");
  b.heads = constant(head_of, "heads");
  b.rows_of_heads = constant(rows_of_heads, "copies of rows");
  b.piece = latent_piece(config);
  const uint32_t of_latent = latent.rank / b.piece, of_turned = turned / b.piece, all = of_latent + of_turned;
  b.latent_moves = constant(moves_of_pieces(width, of_latent, all, 0), "copies of latents");
  b.turned_moves = constant(moves_of_pieces(pairs, of_turned, all, of_latent), "copies of turned parts");
  return b;
}

}  // namespace

std::set<uint32_t> ffn_widths(const ModelConfig& config) {
  std::set<uint32_t> widths;
  for (uint32_t n = 0; n < config.layers; ++n) {
    const bool has_one = config.layer_has_feed_forward(n) && !config.layer_has_experts(n);
    if (has_one || config.has_experts_beside) widths.insert(config.ffn_of(n));
  }
  return widths;
}

uint32_t ungated_width(const ModelConfig& config) {
  uint32_t widest = config.layers_with_experts() > 0 ? config.shared_ffn : 0;
  for (const uint32_t ffn : ffn_widths(config)) widest = std::max(widest, ffn);
  return widest;
}

std::set<uint32_t> query_widths(const ModelConfig& config) {
  std::set<uint32_t> widths;
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (config.is_attention(n) && !config.has_latent_attention()) widths.insert(config.q_width_of(n));
  }
  return widths;
}

uint64_t rotation_words(const ModelConfig& config, uint32_t context) {
  const uint64_t local = config.local_head_dim != 0 ? config.local_head_dim : config.head_dim;
  const uint64_t whole = config.has_unrotated_layers() ? 2 : 1;
  return context * (whole * config.head_dim + (config.has_local_rope() ? local : 0)) +
         uint64_t{query_offset(config, context)} * config.head_dim;
}

PassBuffers allocate_pass_buffers(Device& device, const ModelConfig& config, const ModelLimits& limits) {
  const uint64_t width = limits.rows();
  PassBuffers b;
  b.input = device.allocate_exchanged(pass_input_bytes(limits), HostUse::writes, "pass input");
  b.results = device.allocate_exchanged(pass_result_bytes(config, limits), HostUse::reads, "pass results");
  b.moves = device.allocate_exchanged(kMaxKvMoves * 2 * kWord, HostUse::writes, "K/V moves");

  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.kind == RopeScaling::Kind::longrope && limits.context > scaling.original_context) {
    log_warning("In a context of " + std::to_string(limits.context) + " positions, more than " +
                std::to_string(scaling.original_context) +
                ", this model turns positions as in long texts, in short ones as well; a shorter context has the "
                "others.");
  }
  const auto table = [&](const std::vector<float>& values, const char* name) {
    auto buffer = device.allocate(values.size() * sizeof(float), name);
    device.write(*buffer, 0, as_bytes_of(values));
    return buffer;
  };
  const uint32_t positions = limits.turned_positions();
  b.rotation = table(rotation_table(config, positions), "rotation");
  b.query_offset = query_offset(config, positions);
  // x * 1 - y * 0 is x, bit for bit
  if (config.has_unrotated_layers()) b.no_rotation = table(no_rotation_table(config, positions), "no rotation");
  if (config.has_local_rope()) b.local_rotation = table(local_rotation_table(config, positions), "local rotation");

  if (config.has_post_norms) b.branch = device.allocate(width * config.hidden * sizeof(float), "branch");
  b.x = device.allocate(width * config.hidden * sizeof(float), "x");
  b.qkv = device.allocate(width * (config.q_width() + 2 * config.kv_width()) * sizeof(float), "qkv");
  b.q = device.allocate(width * config.q_width() * sizeof(float), "q");
  if (config.has_output_gate) b.gate = device.allocate(width * config.q_width() * sizeof(float), "attention gates");
  b.normed = device.allocate_activations(limits.rows(), config.hidden, "normed");
  for (const uint32_t queries : query_widths(config)) {
    b.attended.emplace(queries, device.allocate_activations(limits.rows(), queries, "attended"));
  }
  for (const uint32_t ffn : ffn_widths(config)) {
    b.gated.emplace(ffn, device.allocate_activations(limits.rows(), ffn, "gated"));
  }
  if (config.has_latent_attention()) b.latent = allocate_latent_buffers(device, config, limits);
  if (config.layer_inputs != 0) allocate_layer_inputs(device, config, limits, b);
  if (config.has_experts_beside) allocate_sums(device, config, limits, b);
  if (config.has_square_relu) allocate_ungated(device, config, limits, b);
  if (config.layers_with_experts() > 0) allocate_expert_buffers(device, config, limits, b);
  b.gathered = device.allocate_activations(limits.head_rows, config.hidden, "gathered rows");

  if (limits.aux_layers > 0 && config.scales_branches()) {
    b.nothing = table(std::vector<float>(width * config.hidden), "nothing to add");
    b.unread = device.allocate_activations(limits.rows(), config.hidden, "unread activations");
  }
  if (limits.aux_layers > 0)
    b.aux_hidden_states =
        device.allocate(width * limits.aux_layers * config.hidden * sizeof(float), "aux hidden states");
  b.logits = device.allocate(uint64_t{limits.head_rows} * config.vocab * sizeof(float), "logits");
  b.likeliest = device.allocate(width * kWord, "likeliest");
  b.likeliest_logits = device.allocate(width * kLikeliest * sizeof(float), "likeliest logits");
  b.sums = device.allocate(width * sizeof(float), "sums of probabilities");
  return b;
}

}  // namespace canopy
