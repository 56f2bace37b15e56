#include "engine/model/pass_buffers.h"

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

std::set<uint32_t> ffn_widths(const ModelConfig& config) {
  std::set<uint32_t> widths;
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (!config.layer_has_experts(n)) widths.insert(config.ffn_of(n));
  }
  return widths;
}

std::set<uint32_t> query_widths(const ModelConfig& config) {
  std::set<uint32_t> widths;
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (!config.is_recurrent(n)) widths.insert(config.q_width_of(n));
  }
  return widths;
}

uint64_t rotation_words(const ModelConfig& config, uint32_t context) {
  const uint64_t tables = 1 + (config.has_unrotated_layers() ? 1 : 0) + (config.has_local_rope() ? 1 : 0);
  return tables * context * config.head_dim;
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
  b.rotation = table(rotation_table(config, limits.context), "rotation");
  // x * 1 - y * 0 is x, bit for bit
  if (config.has_unrotated_layers()) b.no_rotation = table(no_rotation_table(config, limits.context), "no rotation");
  if (config.has_local_rope()) b.local_rotation = table(local_rotation_table(config, limits.context), "local rotation");

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
  if (config.layers_with_experts() > 0) allocate_expert_buffers(device, config, limits, b);
  b.gathered = device.allocate_activations(limits.head_rows, config.hidden, "gathered rows");

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
