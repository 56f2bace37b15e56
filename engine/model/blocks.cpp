#include "engine/model/blocks.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace canopy {

void embed_tokens(Recorder& record, const ForwardContext& model, const PassShape& pass, const Buffer& first_norm) {
  const PassBuffers& b = model.buffers;
  record.embed({.width = pass.width,
                .table = model.weights.token_embd.get(),
                .rows = b.rows.get(),
                .x = b.x.get(),
                .norm = {&first_norm},
                .out = b.normed.get()});
}

void project_qkv(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const ModelConfig& config = model.config;
  std::vector<const Weight*> stacked;
  for (const auto& weight : weights.qkv) stacked.push_back(weight.get());
  record.project_heads({.weights = stacked,
                        .in = b.normed.get(),
                        .in_norm_eps = config.rms_eps,
                        .qkv = b.qkv.get(),
                        .heads = {.width = pass.width,
                                  .qkv = b.qkv.get(),
                                  .rows = b.rows.get(),
                                  .rotation = b.rotation.get(),
                                  .q_norm = weights.q_norm.get(),
                                  .k_norm = weights.k_norm.get(),
                                  .norm_eps = config.rms_eps,
                                  .heads = config.heads,
                                  .shape = model.kv,
                                  .interleaved = config.rope_layout == RopeLayout::interleaved,
                                  .cache = model.cache[layer].get(),
                                  .q = b.q.get()}});
}

void attend(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  record.attention({.width = pass.width,
                    .q = b.q.get(),
                    .rows = b.rows.get(),
                    .ancestors = b.ancestors.get(),
                    .heads = model.config.heads,
                    .shape = model.kv,
                    .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.config.head_dim))),
                    .max_positions = pass.max_positions,
                    .cache = model.cache[layer].get(),
                    .out = b.attended.get()});
}

void add_attention(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  record.linear_add({.width = pass.width,
                     .weight = weights.attn_output.get(),
                     .in = b.attended.get(),
                     .x = b.x.get(),
                     .norm = {weights.ffn_norm.get()},
                     .out = b.normed.get()});
}

void add_feed_forward(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer,
                      const Buffer& next_norm) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const uint32_t hidden = model.config.hidden;
  const auto& taps = model.tap_layers;
  const auto tap = std::find(taps.begin(), taps.end(), layer);
  const bool tapped = pass.taps && tap != taps.end();
  record.linear_swiglu({.width = pass.width,
                        .weight = weights.gate_up.get(),
                        .in = b.normed.get(),
                        .norm_eps = model.config.rms_eps,
                        .out = b.gated.get()});
  record.linear_add({.width = pass.width,
                     .weight = weights.ffn_down.get(),
                     .in = b.gated.get(),
                     .x = b.x.get(),
                     .norm = {&next_norm},
                     .out = b.normed.get(),
                     .tap = tapped ? b.taps.get() : nullptr,
                     .tap_stride = static_cast<uint32_t>(taps.size()) * hidden,
                     .tap_offset = tapped ? static_cast<uint32_t>(tap - taps.begin()) * hidden : 0});
}

void predict(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  if (pass.head == HeadOutput::none) return;
  const PassBuffers& b = model.buffers;
  if (!pass.all_rows) {
    record.select({.width = pass.width,
                   .count = pass.head_rows,
                   .in = b.normed.get(),
                   .index = b.head_rows.get(),
                   .out = b.selected.get()});
  }
  record.linear({.width = pass.head_rows,
                 .weight = &model.weights.head(),
                 .in = pass.all_rows ? b.normed.get() : b.selected.get(),
                 .norm_eps = model.config.rms_eps,
                 .out = b.logits.get(),
                 .stride = model.config.vocab,
                 .offset = 0});
  if (pass.head == HeadOutput::argmax) {
    record.argmax(
        {.width = pass.head_rows, .logits = b.logits.get(), .vocab = model.config.vocab, .out = b.best.get()});
  }
}

const Buffer& norm_after(const Weights& weights, uint32_t layer) {
  return layer + 1 < weights.layers.size() ? *weights.layers[layer + 1].attn_norm : *weights.output_norm;
}

}  // namespace canopy
