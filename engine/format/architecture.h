#pragma once
// The supported architectures: the specification of each of their layers, and the tensors that follow from it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/model_config.h"

namespace canopy {

// The specification of one layer. The forward pass, the weights and the tensors of a file follow from it.

/// The part of a layer that combines the rows of a sequence.
enum class Mixer {
  attention,          // grouped-query softmax attention with rotary positions
  latent_attention,   // the same of one key for all query heads, whose first elements are its value (LatentAttention)
  gated_delta_net,    // a recurrence with a state of fixed size (engine/compute/ops.h)
  scan,               // another one, Mamba-2's (likewise)
  short_convolution,  // along a few rows of the sequence, between two gates (likewise)
  none,               // the layer is a feed-forward alone, whose norm is the mixer's
};

enum class FeedForward {
  swiglu,              // Wdown (f(Wgate h) * (Wup h)), f the function of the gates
  mixture_of_experts,  // the same in some of many experts, which a router chooses for each row
  none,                // the layer is a mixer alone
  both,  // the sum of both, each behind a norm of its own; router and experts read the rows by their own norms
};

/// A pre-norm layer: x += mixer(rms_norm(x)); x += feed_forward(rms_norm(x)). With post norms what is added is normed
/// too.
struct LayerSpec {
  Mixer mixer = Mixer::attention;
  FeedForward feed_forward = FeedForward::swiglu;
  bool gelu = false;            // the function of the gates is gelu, not silu
  bool square_relu = false;     // there are no gates: Wdown relu(Wup h)^2, of experts too
  bool post_norms = false;      // RMS norm of what mixer and feed-forward give, before it is added
  bool shared_expert = false;   // beside the chosen experts a swiglu of every row, times sigmoid of a gate
  bool shared_gate = true;      // false: without that gate
  bool choice_bias = false;     // of a mixture: added to the router's scores where experts are chosen
  bool qkv_bias = false;        // added to queries, keys and values before their norms
  bool output_bias = false;     // added to what attention adds to the residual stream
  bool sinks = false;           // attention has a logit for each query head that counts in the sum of a softmax alone
  bool expert_bias = false;     // of a mixture: added to the router's logits and to what both products of experts give
  bool qk_norm = false;         // RMS norm of every query and key head before the rotation
  bool v_norm = false;          // RMS norm of every value head, without weights
  bool values_of_keys = false;  // values are what attn_k gives, before norm and rotation: there is no attn_v
  bool own_kv = true;           // false: its queries read the keys and values of another layer
  bool layer_input = false;     // behind the feed-forward: x += norm(W (gelu(gate x) * what the token gives the layer))
  bool layer_scale = false;     // the residual stream is multiplied by a number behind the layer
  RopeLayout rope = RopeLayout::half;  // of queries and keys
  bool output_gate = false;  // results of attention times sigmoid of a gate, which attn_q has behind each head
  bool rotates = true;       // false: queries and keys are not turned, so that positions say nothing
  bool local_rope = false;   // they are turned by ModelConfig::local_rope_theta
  bool causal = true;        // false: the rows of a drafter's block see each other in both directions
  uint32_t window = 0;       // positions: a key is visible iff p_row - p_key < window; 0: no limit
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

// The architectures. A new one whose layers are of kinds that LayerSpec has is a row in architecture.cpp.

/// The layers whose attention has a window where a file gives one without their list.
enum class Windows {
  in_last_layers,       // from 'max_window_layers' on; GGUF has no such field
  in_unrotated_layers,  // those that do not turn their heads
  in_even_layers,       // the first, the third, ...; in config.json it needs no 'use_sliding_window'
  in_all_layers,        // but where 'layer_types' says otherwise; and in config.json it needs no 'use_sliding_window'
};

/// Neighbours may have one name: the same layers under several classes.
struct Architecture {
  std::string_view name;          // ours and GGUF's general.architecture
  std::string_view hugging_face;  // config.json's architectures[0]
  std::string_view models;        // what people call them
  RopeLayout gguf_rope_layout;    // Hugging Face files are always RopeLayout::half
  bool has_qkv_bias = false;
  bool has_output_bias = false;  // beside that, where config.json does not say otherwise
  bool has_qk_norm = false;
  bool ties_head = false;               // in config.json: without 'tie_word_embeddings'
  uint32_t unrotated_step = 0;          // heads of each so many-th layer are not turned; 0: of none
  bool has_fused_tensors = false;       // q, k and v below each other in one, likewise gate and up
  bool has_experts = false;             // in some layers, or all
  bool has_transposed_experts = false;  // in folders, gates of a layer's experts in front of the other halves
  bool is_gpt_oss = false;
  bool is_gemma = false;         // norms behind mixers and feed-forwards, a rotation of its own in layers with a window
  bool is_gemma4 = false;        // of these
  bool is_lfm2 = false;          // some layers are short convolutions
  bool is_latent = false;        // multi-head latent attention
  bool is_glm4 = false;          // biases of q, k and v and norms of heads where the file has them
  bool has_dense_start = false;  // experts behind the first layers, as DeepSeek chooses them
  bool router_has_sigmoid = false;  // of these, where the file does not say
  bool is_granite = false;    // factors of embeddings, branches and logits; scans in some layers, where it has any
  bool is_nemotron = false;   // a mixer, which may be a scan, or a feed-forward without gates in each layer
  bool is_hybrid = false;     // recurrent layers, a gate of attention, heads that are turned in part
  double rope_theta = 10000;  // in config.json: without 'rope_theta'
  Windows window = Windows::in_last_layers;
  Windows gguf_window = Windows::in_last_layers;
  /// The specification of layer n.
  LayerSpec (*layer)(const ModelConfig& config, uint32_t n) = nullptr;
};

/// Which of the layers turn their heads: all but each `step`-th. Empty, which means all of them, where step is 0.
std::vector<bool> layers_that_rotate(uint32_t layers, uint32_t step);

/// Throws, listing what is supported, when there is none of that name.
const Architecture& architecture_by_name(std::string_view name);
/// The same for a class name of config.json.
const Architecture& architecture_by_class(std::string_view class_name);

/// "these architectures run here: llama (Llama 2 and 3, ...), ...": the end of a sentence for messages, with what GGUF
/// files call them and what people do.
std::string what_runs();

/// Of all layers, first to last. Throws what architecture_by_name() throws for config.architecture.
std::vector<LayerSpec> layer_specs(const ModelConfig& config);

/// A tensor that a model of this configuration must have, under its canonical name; a vector has rows = 1.
struct RequiredTensor {
  std::string name;
  uint64_t rows = 0;
  uint64_t cols = 0;
};

std::vector<RequiredTensor> required_tensors(const ModelConfig& config);
/// Those of the layers alone, "blk.N....".
void append_layer_tensors(const ModelConfig& config, std::span<const LayerSpec> layers,
                          std::vector<RequiredTensor>& result);

/// Whether a GGUF file with this general.architecture, or a folder with this class in config.json, is a drafter of some
/// kind; not necessarily one that can be run.
bool is_drafter_architecture(std::string_view name);
bool is_drafter_class(std::string_view class_name);

/// In hybrids without a list of kinds, every so many-th layer is one of attention.
inline constexpr uint32_t kUsualAttentionStep = 4;
/// `step`, where it is not 0. Throws bad_input, naming the field: which layers are of which kind follows from it.
uint32_t checked_layer_step(uint32_t step, const std::string& field);
/// Which layers are recurrences where each `step`-th is attention; step is not 0.
std::vector<bool> recurrent_layers(uint32_t layers, uint32_t step);

}  // namespace canopy
