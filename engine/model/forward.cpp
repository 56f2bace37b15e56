// A pre-norm transformer, read top to bottom: embedding, layers, head.
//
//   x = embedding(token)
//   for each layer:  x += mixer(rms_norm(x));  x += feed_forward(rms_norm(x))
//   logits = rms_norm(x) Wout^T
//
// What distinguishes Llama, Qwen3 and a DFlash drafter is in their LayerSpecs (engine/format/architecture.cpp).

#include "engine/model/forward.h"

#include <algorithm>

#include "engine/model/blocks.h"

namespace canopy {
namespace {

/// x += mixer(rms_norm(x))
void add_mixer(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  switch (model.layers[layer].mixer) {
    case Mixer::attention:
      project_qkv(record, model, pass, layer);
      attend(record, model, pass, layer);
      add_attention(record, model, pass, layer);
      break;
    case Mixer::gated_delta_net:
      project_recurrence(record, model, pass, layer);
      advance_states(record, model, pass, layer);
      add_recurrence(record, model, pass, layer);
      break;
  }
}

/// x += feed_forward(rms_norm(x))
void add_feed_forward(Recorder& record, const ForwardContext& model, const PassShape& pass, uint32_t layer) {
  switch (model.layers[layer].feed_forward) {
    case FeedForward::swiglu: add_swiglu(record, model, pass, layer, norm_after(model.weights, layer)); break;
    case FeedForward::mixture_of_experts:
      add_experts(record, model, pass, layer, norm_after(model.weights, layer));
      break;
  }
}

}  // namespace

void record_forward(Recorder& record, const ForwardContext& model, const PassShape& pass) {
  if (!pass.head_only) {
    embed_tokens(record, model, pass, *model.weights.layers[0].attn_norm);
    for (uint32_t layer = 0; layer < model.layers.size(); ++layer) {
      add_mixer(record, model, pass, layer);
      add_feed_forward(record, model, pass, layer);
    }
    count_experts(record, model, pass);
  }
  predict(record, model, pass);
}

}  // namespace canopy
