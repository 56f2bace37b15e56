#pragma once
// The description of one layer of a transformer. The forward pass, the weights and the tensors of a file follow from
// it.

#include <cstdint>

#include "engine/format/model_config.h"

namespace canopy {

/// The part of a layer that combines the rows of a sequence.
enum class Mixer {
  attention,        // grouped-query softmax attention with rotary positions
  gated_delta_net,  // a recurrence with a state of fixed size (engine/compute/delta_net.h)
};

enum class FeedForward {
  swiglu,              // Wdown (f(Wgate h) * (Wup h)), f the function of the gates
  mixture_of_experts,  // the same in some of many experts, which a router chooses for each row
};

/// A pre-norm layer: x += mixer(rms_norm(x)); x += feed_forward(rms_norm(x)). With post norms what is added is normed
/// too.
struct LayerSpec {
  Mixer mixer = Mixer::attention;
  FeedForward feed_forward = FeedForward::swiglu;
  bool gelu = false;           // the function of the gates is gelu, not silu
  bool post_norms = false;     // RMS norm of what mixer and feed-forward give, before it is added
  bool shared_expert = false;  // beside the chosen experts a swiglu of every row, times sigmoid of a gate
  bool qkv_bias = false;       // added to queries, keys and values before their norms
  bool output_bias = false;    // added to what attention adds to the residual stream
  bool sinks = false;          // attention has a logit for each query head that counts in the sum of a softmax alone
  bool expert_bias = false;    // of a mixture: added to the router's logits and to what both products of experts give
  bool qk_norm = false;        // RMS norm of every query and key head before the rotation
  RopeLayout rope = RopeLayout::half;  // of queries and keys
  bool output_gate = false;  // results of attention times sigmoid of a gate, which attn_q has behind each head
  bool rotates = true;       // false: queries and keys are not turned, so that positions say nothing
  bool local_rope = false;   // they are turned by ModelConfig::local_rope_theta
  bool causal = true;        // false: the rows of a drafter's block see each other in both directions
  uint32_t window = 0;       // positions: a key is visible iff p_row - p_key < window; 0: no limit
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

}  // namespace canopy
