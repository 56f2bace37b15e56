// Llama (Touvron et al., "LLaMA", 2023; grouped-query attention as in Llama 2, frequency scaling as in Llama 3.1).

#include "engine/model/blocks.h"

namespace canopy {

void record_llama(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  embed_tokens(record, model, pass, *model.weights.layers[0].attn_norm);
  for (uint32_t layer = 0; layer < model.config.layers; ++layer) {
    project_qkv(record, model, pass, layer);
    attend(record, model, pass, layer);
    add_attention(record, model, pass, layer);
    add_feed_forward(record, model, pass, layer, norm_after(model.weights, layer));
  }
  predict(record, model, pass);
}

}  // namespace canopy
