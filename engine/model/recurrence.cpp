// The steps of a recurrent layer (blocks.h).

#include "engine/model/blocks.h"

namespace canopy {

void project_recurrence(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const LayerWeights& weights = model.weights.layers[layer];
  const RecurrentMemory& memory = *model.recurrent;
  uint32_t offset = 0;
  const auto product = [&](const Weight& weight, Buffer& out, uint32_t stride) {
    record(LinearArgs{.width = pass.width,
                      .weight = &weight,
                      .in = model.buffers.normed.get(),
                      .norm_eps = model.config.residual_eps(),
                      .out = &out,
                      .stride = stride,
                      .offset = offset});
  };
  for (const auto& weight : weights.qkv) {
    product(*weight, *memory.layer(layer).inputs, memory.shape().row_elements());
    offset += weight->rows();
  }
  offset = 0;
  product(*weights.gate, memory.gate(), memory.shape().values());
}

void advance_states(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  record_recurrence(record, *model.recurrent, model.weights.layers[layer], layer, pass.width, *model.parts.steps, true);
}

void add_recurrence(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  const PassBuffers& b = model.buffers;
  const LayerWeights& weights = model.weights.layers[layer];
  const RecurrentMemory& memory = *model.recurrent;
  record(GatedNormArgs{.width = pass.width,
                       .heads = memory.shape().value_heads,
                       .head_dim = memory.shape().value_dim,
                       .in = &memory.read(),
                       .gate = &memory.gate(),
                       .weight = weights.state_norm.get(),
                       .eps = model.config.rms_eps,
                       .out = &memory.normed()});
  record(LinearAddArgs{.width = pass.width,
                       .weight = weights.attn_output.get(),
                       .in = &memory.normed(),
                       .x = b.x.get(),
                       .norm = {weights.ffn_norm.get()},
                       .out = b.normed.get()});
}

}  // namespace canopy
