#pragma once
// The weights of a model on a device, under the names of the papers (H hidden, Q heads*D, K kv_heads*D, F ffn, V
// vocab, or the elements of all value heads in a recurrence).

#include <memory>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/layer_spec.h"
#include "engine/format/model_file.h"
#include "engine/model/load_monitor.h"
#include "engine/model/tensor_loader.h"
#include "engine/model/weight_plan.h"

namespace canopy {

struct LayerWeights {
  std::unique_ptr<Buffer> attn_norm;         // [H]
  std::vector<std::unique_ptr<Weight>> qkv;  // together [Q + 2K, H]: see LayerPlan
  std::unique_ptr<Buffer> qkv_bias;          // [Q + 2K], null where the architecture has none
  std::unique_ptr<Buffer> q_norm;            // [D], null where the architecture has none
  std::unique_ptr<Buffer> k_norm;            // [D], likewise
  std::unique_ptr<Weight> gate;              // [Q, H] of attention with an output gate, [V, H] of a recurrence; or null
  std::unique_ptr<Weight> attn_output;       // [H, Q]; [H, V] of a recurrence
  std::unique_ptr<Buffer> output_bias;       // [H], null where the architecture has none
  std::unique_ptr<Buffer> sinks;             // [heads], likewise
  // Of a recurrence, whose qkv is [2 keys + V + 2 value heads, H]: queries, keys, values, then b and a of each head.
  std::unique_ptr<Buffer> taps;        // [channels, taps]
  std::unique_ptr<Buffer> decay_bias;  // [value heads]
  std::unique_ptr<Buffer> decay_rate;  // [value heads], negative
  std::unique_ptr<Buffer> state_norm;  // [value head dimension]
  std::unique_ptr<Buffer> ffn_norm;    // [H]
  // Post norms, times the scale of the residual stream; null where the architecture has none.
  std::unique_ptr<Buffer> attn_post_norm;  // [H]
  std::unique_ptr<Buffer> ffn_post_norm;   // [H]
  std::unique_ptr<Buffer> router;    // [E, H], null but where the layer has E experts; a row more with a shared one
  std::unique_ptr<Weight> gate_up;   // [2F, H], rows of gate and up in turn; [E * 2F, H] with experts
  std::unique_ptr<Weight> ffn_down;  // [H, F]; [E * H, F] with experts
  std::unique_ptr<Weight> shared_gate_up;  // [2S, H] as gate_up, of the expert that every row goes through; or null
  std::unique_ptr<Weight> shared_down;     // [H, S], likewise
  // Of experts with biases, one for each row of their weights.
  std::unique_ptr<Buffer> router_bias;   // [E]
  std::unique_ptr<Buffer> gate_up_bias;  // [E * 2F]
  std::unique_ptr<Buffer> down_bias;     // [E * H]
};

/// The weights of layer n. `plan` comes from plan_layer().
LayerWeights load_layer(TensorLoader& tensors, const RequireTensor& require, const ModelConfig& config,
                        const LayerSpec& spec, const LayerPlan& plan, uint32_t n);

struct Weights {
  std::unique_ptr<Weight> token_embd;  // [V, H]
  std::vector<LayerWeights> layers;
  std::unique_ptr<Buffer> output_norm;  // [H]
  std::unique_ptr<Weight> output;       // [V, H], null where the head is tied

  const Weight& head() const { return output ? *output : *token_embd; }
};

/// The matrices of a plan, in the order in which load_weights() loads them.
std::vector<const MatrixPlan*> in_load_order(const WeightPlan& plan);
/// Appends those of a layer, in the order of load_layer().
void append_in_load_order(const LayerPlan& plan, std::vector<const MatrixPlan*>& matrices);

/// Copies the matrices and norms to the device, in the types of the plan. Beside the device's copy only the rows at
/// hand and some megabytes around them are in memory, of the file and converted. Throws cancelled when stop is
/// requested, bad_input when the file changed under us, a norm holds a value that is not finite or a weight one that
/// cannot be quantized.
Weights load_weights(const ModelFile& file, const WeightPlan& plan, Device& device, const LoadCallbacks& callbacks);

}  // namespace canopy
