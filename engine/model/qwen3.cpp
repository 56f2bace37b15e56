// Qwen3, dense (Qwen Team, "Qwen3 Technical Report", 2025): Llama's block, with an RMS norm over every query and key
// head before the rotation. The norms come with the layer's weights: q_norm and k_norm.

#include "engine/model/blocks.h"

namespace canopy {

void record_qwen3(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  embed_tokens(record, model, pass, *model.weights.layers[0].attn_norm);
  for (uint32_t layer = 0; layer < model.config.layers; ++layer) {
    project_qkv(record, model, pass, layer);  // normalises the heads of q and k
    attend(record, model, pass, layer);
    add_attention(record, model, pass, layer);
    add_feed_forward(record, model, pass, layer, norm_after(model.weights, layer));
  }
  predict(record, model, pass);
}

}  // namespace canopy
