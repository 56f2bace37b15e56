#pragma once
// The configuration of a model, the same for all file formats. Every value was range-checked when it was read.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace canopy {

/// Which two elements of a head one rotary angle turns.
enum class RopeLayout {
  interleaved,  // (2i, 2i+1): llama in GGUF, whose converter permutes the rows of q and k
  half,         // (i, i + head_dim/2): Hugging Face files, and qwen3 in GGUF
};

struct RopeScaling {
  enum class Kind {
    none,
    linear,        // every frequency divided by `factor`
    llama3,        // frequencies divided by 1 ... `factor`, by wavelength
    factors,       // frequency i divided by `divisors[i]`: how GGUF stores llama3's rule (tensor rope_freqs)
    yarn,          // those that turn seldom divided by `factor`, those that turn often kept (Peng et al., "YaRN", 2023)
    longrope,      // as `factors`, or by `long_divisors` in a context above the original one (Ding et al., "LongRoPE",
                   // 2024)
    proportional,  // frequencies of the whole head divided by `factor`, but only the first `turned_pairs` turn (Gemma
                   // 4)
  };
  Kind kind = Kind::none;
  double factor = 1;                      // linear, llama3, yarn, proportional
  double low_freq_factor = 1;             // llama3
  double high_freq_factor = 4;            // llama3
  uint32_t original_context = 0;          // positions it was trained on before the scaling: llama3, yarn, longrope, and
                                          // where queries grow
  double beta_fast = 32;                  // yarn: turns in the original context above which a frequency is kept
  double beta_slow = 1;                   // yarn: below which it is divided
  bool truncate = true;                   // yarn: the range between both ends at whole pairs
  double magnitude = 1;                   // yarn, longrope: queries and keys are multiplied by it as they are turned
  std::vector<float> divisors;            // factors, longrope: [head_dim / 2]
  std::vector<float> long_divisors = {};  // longrope: [head_dim / 2]
  uint32_t turned_pairs = 0;              // proportional
  double query_growth = 0;                // queries at position p are multiplied by 1 + query_growth ln(1 + floor(p /
                                          // original_context)), keys are not
};

/// Recurrent layers: gated delta nets (Yang et al., "Gated Delta Networks", 2024), or scans (Dao and Gu, "Transformers
/// are SSMs", 2024), whose queries are C of Mamba-2, keys B, and values x.
struct DeltaNetConfig {
  uint32_t key_heads = 0;    // of queries and keys
  uint32_t value_heads = 0;  // a multiple of key_heads
  uint32_t key_dim = 0;      // of a head; a multiple of 4, as value_dim
  uint32_t value_dim = 0;
  uint32_t taps = 0;   // of the convolution, a row's own included
  bool tiled = false;  // value head h goes with key head h % key_heads; otherwise with h / (value_heads / key_heads)
  // As Qwen3-Next has it, one matrix in which the rows of a key head lie together: its query, its key, its values and
  // their gates (ssm_in), and of its values all betas, then all alphas (ssm_ba).
  bool has_joined_inputs = false;
  bool has_joined_rates = false;
  bool scans = false;          // its matrix ssm_in has gates, values, keys, queries and steps
  bool has_conv_bias = false;  // of the convolution
  bool has_log_rates = false;  // ssm_a has the logarithms of the rates' negatives, as they were trained

  uint32_t keys() const { return key_heads * key_dim; }
  uint32_t values() const { return value_heads * value_dim; }
  uint32_t channels() const { return 2 * keys() + values(); }        // queries, keys and values
  uint32_t heads_of_key() const { return value_heads / key_heads; }  // value heads
  friend bool operator==(const DeltaNetConfig&, const DeltaNetConfig&) = default;
};

/// Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", 2024): keys and values of all heads are products of a
/// latent of each position, beside which one part of the keys, the same for all heads, is turned. What is kept of a
/// position are these two, ModelConfig::head_dim elements in all, as one key of all query heads; the matrices that make
/// keys and values of latents are multiplied with queries and with what attention gives instead.
struct LatentAttention {
  uint32_t rank = 0;        // elements of a latent; a multiple of 4; 0: attention is not of this kind
  uint32_t query_rank = 0;  // of another one that queries are made of; 0: they are made of the rows themselves
  uint32_t key_dim = 0;     // of a query or key head, its elements that are not turned
  uint32_t value_dim = 0;   // elements of a value head
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

struct ModelConfig {
  std::string architecture;        // as GGUF has it: "llama", "qwen2", "qwen3moe"
  std::string name;                // for people; made safe to show
  std::vector<std::string> notes;  // sentences for the user: what of the file is not used
  uint32_t layers = 0;
  uint32_t hidden = 0;              // width of the residual stream
  uint32_t heads = 0;               // query heads, the most where layers differ; * head_dim need not equal hidden
  uint32_t kv_heads = 0;            // likewise; those of a layer divide its query heads
  uint32_t head_dim = 0;            // even; but for the layers that turn locally, where local_head_dim is given
  uint32_t local_head_dim = 0;      // of the layers that turn by local_rope_theta; 0: head_dim
  uint32_t ffn = 0;                 // inner width of the feed-forward, the largest where layers differ
  uint32_t experts = 0;             // of each layer that has any; 0: none has
  uint32_t experts_used = 0;        // that a row goes through
  uint32_t expert_ffn = 0;          // inner width of one
  uint32_t shared_ffn = 0;          // of the expert that every row of such a layer goes through; 0: there is none
  bool gates_shared_expert = true;  // it counts sigmoid of a gate; otherwise 1
  bool shares_among_chosen = true;  // what a row's experts count adds up to 1
  bool router_has_sigmoid = false;  // of logits, in the place of a softmax
  bool has_choice_bias = false;     // added to the router's scores where experts are chosen, not to what they count
  uint32_t expert_groups = 1;       // of neighbouring experts, of which a row's come from `expert_groups_used`
  uint32_t expert_groups_used = 1;
  float share_factor = 1;         // what a row's experts count is multiplied by
  std::vector<bool> has_experts;  // by layer: whether it has experts in the place of a feed-forward; empty: none has
  float swiglu_limit = 0;         // of experts: gates are clamped to it (ExpertSwigluArgs); 0: they are not
  uint32_t vocab = 0;             // rows of the embedding; the tokenizer may have fewer entries
  uint32_t max_context = 0;       // positions
  float rms_eps = 0;
  double rope_theta = 0;
  double local_rope_theta = 0;  // of the layers that turn by it, without scaling; 0: there are none
  RopeScaling rope_scaling;
  RopeLayout rope_layout = RopeLayout::half;
  std::vector<bool> rotates;             // by layer: whether it turns queries and keys; empty: all do
  std::vector<bool> turns_locally;       // by layer: whether it turns by local_rope_theta; empty: none does
  std::vector<uint32_t> layer_ffn;       // by layer: inner width of its feed-forward; empty: ffn in all
  std::vector<uint32_t> layer_heads;     // by layer, of which recurrent ones have the most; empty: heads in all
  std::vector<uint32_t> layer_kv_heads;  // likewise; empty: kv_heads in all
  std::vector<uint32_t> windows;  // by layer: positions that a row sees, its own included, 0: all; empty: all in all
  double query_width = 0;         // products of queries and keys are divided by its root; 0: head_dim
  float attention_softcap = 0;    // such a product s counts as cap * tanh(s / cap); 0: as it is
  float logit_softcap = 0;        // so do logits
  float embedding_scale = 1;      // rows of the embedding are multiplied by it
  /// The residual stream is kept multiplied by it: with post norms a power of two; else one by what mixers and
  /// feed-forwards give is multiplied by before it is added.
  float residual_scale = 1;
  float logit_divisor = 1;        // logits are divided by it
  bool has_post_norms = false;    // RMS norm of what mixer and feed-forward give, before it is added
  bool has_qkv_bias = false;      // added to queries, keys and values
  bool has_output_bias = false;   // added to what attention adds to the residual stream
  bool has_sinks = false;         // attention has a logit for each query head that counts in the sum of a softmax alone
  bool has_expert_bias = false;   // of router and experts
  bool has_qk_norm = false;       // RMS norm of every query and key head before the rotation
  bool has_v_norm = false;        // RMS norm of every value head, without weights
  bool has_layer_scales = false;  // the residual stream is multiplied by a number of its own behind each layer
  bool has_experts_beside = false;  // experts stand beside a feed-forward, not in its place; each has norms of its own
  uint32_t layer_inputs = 0;  // width of what each layer is given of a token besides the residual stream; 0: nothing
  uint32_t shared_kv_layers =
      0;  // the last ones: they read keys and values of the last layer of their kind before them
  std::vector<bool> values_of_keys;  // by layer: whether its values are what attn_k gives, before norm and rotation
  bool tied_head = false;            // the output head is token_embd
  // Models whose layers are a mixer or a feed-forward each.
  std::vector<bool> has_mixer;         // by layer: whether it has one; empty: all have
  std::vector<bool> has_feed_forward;  // by layer: whether it has one, or experts; empty: all have
  bool has_square_relu = false;        // feed-forwards and experts have no gates: their function is relu(x)^2
  // Hybrids of attention and recurrences.
  std::vector<bool> recurrent;   // by layer: whether it is a recurrence; empty: none is
  DeltaNetConfig delta_net;      // of these layers
  uint32_t conv_taps = 0;        // of short convolutions, which these layers are then instead; 0: they are not
  LatentAttention latent;        // head_dim is then its rank and the elements that are turned, behind it; one K/V head
  bool has_output_gate = false;  // attn_q has a gate behind each query head, which the attention's results pass
  uint32_t rotary_dim = 0;       // elements of a head, the first (behind a latent, the last), that are turned; 0: all
  /// The file has weights of norms less 1, but for the recurrences' own: as they were trained.
  bool has_trained_form = false;
  uint32_t unread_layers = 0;  // behind the others in the file: they predict further tokens and are not used
  std::optional<uint32_t> bos;
  std::vector<uint32_t> eos;        // any of these ends a reply; may be empty
  std::vector<uint32_t> file_ends;  // of eos, what ends a file that is filled in: no chat writes it
  std::string quantization;         // the type that holds most of the weights' bytes, e.g. "Q4_1"
  uint64_t parameters = 0;          // elements of all tensors

  uint32_t q_width() const;   // the most of q_width_of()
  uint32_t kv_width() const;  // of kv_width_of()
  uint32_t heads_of(uint32_t n) const { return layer_heads.empty() ? heads : layer_heads[n]; }
  uint32_t kv_heads_of(uint32_t n) const { return layer_kv_heads.empty() ? kv_heads : layer_kv_heads[n]; }
  uint32_t head_dim_of(uint32_t n) const {
    return local_head_dim != 0 && turns_locally_in(n) ? local_head_dim : head_dim;
  }
  uint32_t q_width_of(uint32_t n) const {
    return heads_of(n) * head_dim_of(n);
  }  // rows of attn_q, columns of attn_output
  uint32_t kv_width_of(uint32_t n) const { return kv_heads_of(n) * head_dim_of(n); }  // rows of attn_k and attn_v
  /// The layer whose keys and values layer n reads: n, or where it has none, another.
  uint32_t kv_layer_of(uint32_t n) const;
  bool has_own_kv(uint32_t n) const { return n + shared_kv_layers < layers; }
  bool has_values_of_keys(uint32_t n) const { return !values_of_keys.empty() && values_of_keys[n]; }
  /// Of the layers of attention, rounded: for what describes a model by one layer.
  uint32_t mean_head_dim() const;  // even
  uint32_t mean_kv_heads() const;
  uint32_t mean_heads() const;  // the nearest multiple of mean_kv_heads()
  uint32_t ffn_of(uint32_t n) const { return layer_ffn.empty() ? ffn : layer_ffn[n]; }
  uint32_t mean_ffn() const;  // rounded
  /// The residual stream is kept multiplied without norms that take its scale away where something is added.
  bool scales_branches() const { return residual_scale != 1 && !has_post_norms; }
  bool layer_has_experts(uint32_t n) const { return !has_experts.empty() && has_experts[n]; }
  uint32_t layers_with_experts() const { return static_cast<uint32_t>(std::ranges::count(has_experts, true)); }
  bool has_unrotated_layers() const { return std::ranges::find(rotates, false) != rotates.end(); }
  bool has_latent_attention() const { return latent.rank != 0; }
  bool is_recurrent(uint32_t layer) const { return layer < recurrent.size() && recurrent[layer]; }
  uint32_t recurrent_layers() const { return static_cast<uint32_t>(std::ranges::count(recurrent, true)); }
  bool layer_has_mixer(uint32_t n) const { return has_mixer.empty() || has_mixer[n]; }
  bool layer_has_feed_forward(uint32_t n) const { return has_feed_forward.empty() || has_feed_forward[n]; }
  bool is_attention(uint32_t n) const { return layer_has_mixer(n) && !is_recurrent(n); }
  uint32_t attention_layers() const {  // those with K/V
    return layers - recurrent_layers() - static_cast<uint32_t>(std::ranges::count(has_mixer, false));
  }
  double query_scale() const;  // what products of queries and keys are multiplied by
  /// Of norms of the residual stream; never 0, which would stand for no norm.
  float residual_eps() const {
    return std::max(rms_eps * residual_scale * residual_scale, std::numeric_limits<float>::min());
  }
  bool has_local_rope() const { return std::ranges::find(turns_locally, true) != turns_locally.end(); }
  bool turns_locally_in(uint32_t n) const { return !turns_locally.empty() && turns_locally[n]; }
  /// Elements of a head that are turned.
  uint32_t turned() const { return rotary_dim != 0 ? rotary_dim : head_dim; }
};

/// Radians one position turns pair i by, scaling applied: [turned() / 2]. A model that is loaded
/// with a context of so many positions may turn by others than in a short one.
std::vector<double> rope_frequencies(const ModelConfig& config, uint32_t context = 0);

/// The same for the layers that turn by local_rope_theta.
std::vector<double> local_rope_frequencies(const ModelConfig& config);

/// What YaRN multiplies queries and keys by where a file says nothing else; the multiplier is of its logarithm.
double yarn_magnitude(double factor, double multiplier = 1);

/// Says in config.notes that the context ends where a rotation of the kind "dynamic" would begin to change.
void note_dynamic_rope(ModelConfig& config);

/// Throws an Error for a layer count that no model has: before anything is made for each layer.
void check_layer_count(uint32_t layers);

/// validate_config() without the vocabulary: for a model that borrows another's.
void validate_transformer(const ModelConfig& config);

/// Throws an Error that names the field when a value is zero, absurd, not a number or does not fit the others.
void validate_config(const ModelConfig& config);

/// Throws bad_input where a field that has one supported value has another. `field`: "field 'n_group' of config.json".
void refuse_other(const std::string& field, uint32_t value, uint32_t supported);

}  // namespace canopy
