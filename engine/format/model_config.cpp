#include "engine/format/model_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <sstream>

#include "engine/base/error.h"

namespace canopy {
namespace {

// Far above any published model, low enough that products of two stay below 2^63 and tables stay small.
constexpr uint64_t max_layers = 512;
constexpr uint64_t max_hidden = 1 << 17;
constexpr uint64_t max_heads = 1024;
constexpr uint64_t max_head_dim = 1024;
constexpr uint64_t max_ffn = 1 << 20;
constexpr uint64_t max_experts = 1024;
constexpr uint64_t max_experts_used = 64;
constexpr uint64_t max_all_experts = 1 << 16;  // of all layers: each has names for its tensors
constexpr uint64_t max_vocab = 1 << 22;
constexpr uint64_t max_positions = 1 << 26;
constexpr uint64_t max_key_dim = 128;  // a column of a recurrent state, which kernels keep in registers
constexpr uint64_t max_taps = 8;
constexpr double most_scaling = 1e6;
constexpr double most_limit = 1e6;

std::string text_of(double value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

void check_count(const char* field, uint64_t value, uint64_t limit) {
  if (value >= 1 && value <= limit) return;
  throw bad_input("The model's " + std::string(field) + " is " + std::to_string(value) + "; 1 to " +
                  std::to_string(limit) + " is allowed.");
}

/// low < value <= high; a NaN fails.
void check_real(const char* field, double value, double low, double high) {
  if (value > low && value <= high) return;
  throw bad_input("The model's " + std::string(field) + " is " + text_of(value) + "; a number above " + text_of(low) +
                  " and at most " + text_of(high) + " is allowed.");
}

void check_token(const char* field, uint32_t id, uint32_t vocab) {
  if (id < vocab) return;
  throw bad_input("The model's " + std::string(field) + " is " + std::to_string(id) + ", outside its vocabulary of " +
                  std::to_string(vocab) + " tokens.");
}

void check_experts_of(const ModelConfig& config) {
  if (config.has_experts.empty()) return;
  if (config.experts < 2 || config.experts > max_experts) {
    throw bad_input("The model's expert count is " + std::to_string(config.experts) + "; 2 to " +
                    std::to_string(max_experts) + " is allowed.");
  }
  if (uint64_t{config.layers_with_experts()} * config.experts > max_all_experts) {
    throw bad_input("The model has " + std::to_string(config.layers_with_experts()) + " layers with " +
                    std::to_string(config.experts) + " experts each; at most " + std::to_string(max_all_experts) +
                    " experts are allowed in all layers.");
  }
  check_count("number of experts that a token uses", config.experts_used,
              std::min<uint64_t>(config.experts, max_experts_used));
  check_count("feed-forward size of an expert", config.expert_ffn, max_ffn);
  if (config.shared_ffn != 0) check_count("feed-forward size of the shared expert", config.shared_ffn, max_ffn);
  if (config.has_expert_bias) check_real("swiglu_limit", config.swiglu_limit, 0, most_limit);
}

void check_router(const ModelConfig& config) {
  if (config.has_experts.empty()) return;
  check_real("factor of the experts' shares", config.share_factor, 0, most_limit);
  const uint32_t groups = config.expert_groups;
  check_count("number of groups of experts", groups, config.experts);
  check_count("number of groups of experts that a token uses", config.expert_groups_used, groups);
  if (groups == 1) return;
  if (config.experts % groups != 0 || config.experts / groups < 2) {
    throw bad_input("The model's " + std::to_string(config.experts) + " experts are in " + std::to_string(groups) +
                    " groups; groups of the same number, at least 2, are allowed.");
  }
  if (config.experts_used > config.experts / groups * config.expert_groups_used) {
    throw bad_input("A token uses " + std::to_string(config.experts_used) + " experts of the model out of " +
                    std::to_string(config.expert_groups_used) + " groups of " +
                    std::to_string(config.experts / groups) + "; at most as many as these have are allowed.");
  }
}

void check_divisors(const ModelConfig& config, const std::vector<float>& divisors) {
  if (divisors.size() != config.turned() / 2) {
    throw bad_input("The model has " + std::to_string(divisors.size()) + " rope frequency factors; " +
                    std::to_string(config.turned() / 2) + " are expected, one for each pair of a head that turns.");
  }
  for (const float divisor : divisors) check_real("rope frequency factor", divisor, 0, most_scaling);
}

void check_scaling(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  using Kind = RopeScaling::Kind;
  if (scaling.kind == Kind::linear || scaling.kind == Kind::llama3 || scaling.kind == Kind::yarn) {
    check_real("rope scaling factor", scaling.factor, 0, most_scaling);
  }
  if (scaling.kind == Kind::llama3) {
    check_real("rope scaling low_freq_factor", scaling.low_freq_factor, 0, most_scaling);
    // Above low: their difference is divided by.
    check_real("rope scaling high_freq_factor", scaling.high_freq_factor, scaling.low_freq_factor, most_scaling);
    check_count("rope scaling original_max_position_embeddings", scaling.original_context, max_positions);
  }
  if (scaling.kind == Kind::yarn || scaling.kind == Kind::longrope) {
    check_count("rope scaling original_max_position_embeddings", scaling.original_context, max_positions);
    check_real("rope scaling attention_factor", scaling.magnitude, 0, most_scaling);
  }
  if (scaling.kind == Kind::yarn) {
    check_real("rope scaling beta_slow", scaling.beta_slow, 0, most_scaling);
    check_real("rope scaling beta_fast", scaling.beta_fast, scaling.beta_slow, most_scaling);
  }
  if (scaling.kind == Kind::proportional) {
    check_real("rope scaling factor", scaling.factor, 0, most_scaling);
    check_count("number of pairs of a head that turn", scaling.turned_pairs, config.head_dim / 2);
  }
  if (scaling.query_growth != 0) {
    check_count("rope scaling original_max_position_embeddings", scaling.original_context, max_positions);
    check_real("growth of queries (llama_4_scaling_beta)", scaling.query_growth, 0, most_scaling);
  }
  if (scaling.kind == Kind::factors || scaling.kind == Kind::longrope) check_divisors(config, scaling.divisors);
  if (scaling.kind == Kind::longrope) check_divisors(config, scaling.long_divisors);
}

/// The llama3 rule: long wavelengths are stretched by `factor`, short ones kept, those between interpolated.
double llama3_frequency(double frequency, const RopeScaling& scaling) {
  const double turns = scaling.original_context * frequency / (2 * std::numbers::pi);  // in the original context
  if (turns > scaling.high_freq_factor) return frequency;
  if (turns < scaling.low_freq_factor) return frequency / scaling.factor;
  const double smooth = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

/// The pairs between which YaRN goes over from kept to divided frequencies: those that turn beta_fast and beta_slow
/// times in the original context.
class YarnRamp {
 public:
  YarnRamp() = default;
  explicit YarnRamp(const ModelConfig& config) {
    const RopeScaling& scaling = config.rope_scaling;
    const auto pair_that_turns = [&](double times) {
      const double per_radian = scaling.original_context / (times * 2 * std::numbers::pi);
      return config.turned() * std::log(per_radian) / (2 * std::log(config.rope_theta));
    };
    const double low = pair_that_turns(scaling.beta_fast), high = pair_that_turns(scaling.beta_slow);
    low_ = std::max(0.0, scaling.truncate ? std::floor(low) : low);
    high_ = std::min(config.turned() - 1.0, scaling.truncate ? std::ceil(high) : high);
    if (low_ == high_) high_ += 0.001;
  }

  /// 0: the pair keeps its frequency; 1: it is divided.
  double operator()(size_t pair) const {
    return std::clamp((static_cast<double>(pair) - low_) / (high_ - low_), 0.0, 1.0);
  }

 private:
  double low_ = 0, high_ = 0;
};

}  // namespace

std::vector<double> rope_frequencies(const ModelConfig& config, uint32_t context) {
  const RopeScaling& scaling = config.rope_scaling;
  const YarnRamp ramp = scaling.kind == RopeScaling::Kind::yarn ? YarnRamp(config) : YarnRamp();
  const bool is_long = context > scaling.original_context;
  std::vector<double> result(config.turned() / 2);
  for (size_t i = 0; i < result.size(); ++i) {
    const double frequency = std::pow(config.rope_theta, -2.0 * static_cast<double>(i) / config.turned());
    switch (scaling.kind) {
      case RopeScaling::Kind::none: result[i] = frequency; break;
      case RopeScaling::Kind::linear: result[i] = frequency / scaling.factor; break;
      case RopeScaling::Kind::llama3: result[i] = llama3_frequency(frequency, scaling); break;
      case RopeScaling::Kind::factors: result[i] = frequency / scaling.divisors[i]; break;
      case RopeScaling::Kind::yarn: result[i] = ramp(i) * frequency / scaling.factor + (1 - ramp(i)) * frequency; break;
      case RopeScaling::Kind::longrope:
        result[i] = frequency / (is_long ? scaling.long_divisors : scaling.divisors)[i];
        break;
      case RopeScaling::Kind::proportional:
        result[i] = i < scaling.turned_pairs ? frequency / scaling.factor : 0;
        break;
    }
  }
  return result;
}

std::vector<double> local_rope_frequencies(const ModelConfig& config) {
  ModelConfig local;
  local.head_dim = config.local_head_dim != 0 ? config.local_head_dim : config.head_dim;
  local.rotary_dim = config.rotary_dim;
  local.rope_theta = config.local_rope_theta;
  return rope_frequencies(local);
}

uint32_t ModelConfig::mean_ffn() const {
  if (layer_ffn.empty()) return ffn;
  const uint64_t sum = std::accumulate(layer_ffn.begin(), layer_ffn.end(), uint64_t{0});
  return static_cast<uint32_t>((sum + layer_ffn.size() / 2) / layer_ffn.size());
}

namespace {

/// Of the layers of attention; the division rounds.
uint64_t sum_of_heads(const ModelConfig& config, const std::vector<uint32_t>& by_layer) {
  uint64_t sum = 0;
  for (uint32_t n = 0; n < config.layers; ++n) sum += config.is_attention(n) ? by_layer[n] : 0;
  return sum;
}

uint32_t nearest_quotient(uint64_t sum, uint64_t by) {
  return static_cast<uint32_t>(std::max<uint64_t>(1, (sum + by / 2) / by));
}

}  // namespace

uint32_t ModelConfig::q_width() const {
  if (local_head_dim == 0) return heads * head_dim;
  uint32_t most = 0;
  for (uint32_t n = 0; n < layers; ++n) most = std::max(most, q_width_of(n));
  return most;
}

uint32_t ModelConfig::kv_width() const {
  if (local_head_dim == 0) return kv_heads * head_dim;
  uint32_t most = 0;
  for (uint32_t n = 0; n < layers; ++n) most = std::max(most, kv_width_of(n));
  return most;
}

uint32_t ModelConfig::kv_layer_of(uint32_t n) const {
  if (has_own_kv(n)) return n;
  for (uint32_t m = layers - shared_kv_layers; m-- > 0;) {
    if (turns_locally_in(m) == turns_locally_in(n)) return m;
  }
  return n;  // validate_config refuses that
}

uint32_t ModelConfig::mean_head_dim() const {
  if (local_head_dim == 0) return head_dim;
  uint64_t sum = 0;
  for (uint32_t n = 0; n < layers; ++n) sum += is_attention(n) ? head_dim_of(n) : 0;
  return 2 * nearest_quotient(sum, 2 * uint64_t{attention_layers()});
}

uint32_t ModelConfig::mean_kv_heads() const {
  if (layer_kv_heads.empty()) return kv_heads;
  return nearest_quotient(sum_of_heads(*this, layer_kv_heads), attention_layers());
}

uint32_t ModelConfig::mean_heads() const {
  const uint32_t of_keys = mean_kv_heads();
  const uint64_t sum = layer_heads.empty() ? uint64_t{heads} * attention_layers() : sum_of_heads(*this, layer_heads);
  return of_keys * nearest_quotient(sum, uint64_t{of_keys} * attention_layers());
}

double ModelConfig::query_scale() const {
  return 1.0 / std::sqrt(query_width != 0 ? query_width : static_cast<double>(head_dim));
}

double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1 ? 1 : 0.1 * multiplier * std::log(factor) + 1;
}

void note_dynamic_rope(ModelConfig& config) {
  config.notes.push_back("The context is limited to " + std::to_string(config.max_context) +
                         " positions, behind which the model's rotary embedding would change with the length of the "
                         "text (rope scaling 'dynamic').");
}

namespace {

void check_fours(const char* field, uint32_t value, uint64_t limit) {
  check_count(field, value, limit);
  if (value % 4 == 0) return;
  throw bad_input("The model's " + std::string(field) + " is " + std::to_string(value) +
                  "; multiples of 4 are allowed.");
}

/// `what`: "recurrent convolution".
void check_taps(const std::string& what, uint32_t taps) {
  if (taps >= 2 && taps <= max_taps) return;
  throw bad_input("The model's length of the " + what + " is " + std::to_string(taps) + "; 2 to " +
                  std::to_string(max_taps) + " are allowed.");
}

void check_delta_net(const DeltaNetConfig& net) {
  check_count("number of recurrent key heads", net.key_heads, max_heads);
  check_count("number of recurrent value heads", net.value_heads, max_heads);
  if (net.value_heads % net.key_heads != 0) {
    throw bad_input("The model's number of recurrent value heads " + std::to_string(net.value_heads) +
                    " is no multiple of its number of recurrent key heads " + std::to_string(net.key_heads) + ".");
  }
  check_fours("recurrent key head dimension", net.key_dim, max_key_dim);
  check_fours("recurrent value head dimension", net.value_dim, max_head_dim);
  check_taps("recurrent convolution", net.taps);
}

void check_turned_part(const ModelConfig& config) {
  if (config.rotary_dim % 2 == 0 && config.rotary_dim <= config.head_dim) return;
  throw bad_input("The model turns " + std::to_string(config.rotary_dim) +
                  " elements of each head; even numbers up to " + std::to_string(config.head_dim) +
                  ", the head dimension, are allowed.");
}

void check_latent(const ModelConfig& config) {
  const LatentAttention& latent = config.latent;
  if (latent.rank == 0) return;
  check_fours("latent size (kv_lora_rank)", latent.rank, max_head_dim);
  if (latent.query_rank != 0) check_count("latent size of queries (q_lora_rank)", latent.query_rank, max_hidden);
  check_count("key size before the rotated part (qk_nope_head_dim)", latent.key_dim, max_head_dim);
  check_count("value size (v_head_dim)", latent.value_dim, max_head_dim);
  check_fours("rotated part of keys (qk_rope_head_dim)", config.rotary_dim, max_head_dim);
}

void check_head_dim(const char* field, uint32_t head_dim) {
  check_count(field, head_dim, max_head_dim);
  if (head_dim % 2 == 0) return;
  throw bad_input("The model's " + std::string(field) + " is " + std::to_string(head_dim) +
                  "; it must be even, rotary embedding turns pairs.");
}

/// `place`: "", or " in layer 3".
void check_heads(uint32_t heads, uint32_t kv_heads, const std::string& place) {
  check_count(("head count" + place).c_str(), heads, max_heads);
  check_count(("key/value head count" + place).c_str(), kv_heads, max_heads);
  if (heads % kv_heads == 0) return;
  throw bad_input("The model's head count " + std::to_string(heads) + place +
                  " is no multiple of its key/value head count " + std::to_string(kv_heads) + ".");
}

/// Numbers of heads, which may be of each layer.
void check_all_heads(const ModelConfig& config) {
  if (config.layer_heads.empty() && config.layer_kv_heads.empty()) {
    return check_heads(config.heads, config.kv_heads, "");
  }
  for (const std::vector<uint32_t>* by_layer : {&config.layer_heads, &config.layer_kv_heads}) {
    if (by_layer->empty() || by_layer->size() == config.layers) continue;
    throw bad_input("The model states the head count of " + std::to_string(by_layer->size()) + " layers; it has " +
                    std::to_string(config.layers) + ".");
  }
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (!config.is_attention(n)) continue;
    check_heads(config.heads_of(n), config.kv_heads_of(n), " in layer " + std::to_string(n));
  }
}

/// The widths of feed-forwards, which may be of each layer.
void check_ffn(const ModelConfig& config) {
  check_count("feed-forward size", config.ffn, max_ffn);
  if (config.layer_ffn.empty()) return;
  if (config.layer_ffn.size() != config.layers) {
    throw bad_input("The model states the feed-forward size of " + std::to_string(config.layer_ffn.size()) +
                    " layers; it has " + std::to_string(config.layers) + ".");
  }
  for (uint32_t n = 0; n < config.layers; ++n) {
    check_count(("feed-forward size in layer " + std::to_string(n)).c_str(), config.layer_ffn[n], max_ffn);
  }
}

void check_hybrid(const ModelConfig& config) {
  if (config.recurrent.empty()) return;
  if (config.recurrent.size() != config.layers) {
    throw bad_input("The model states the kind of " + std::to_string(config.recurrent.size()) + " layers; it has " +
                    std::to_string(config.layers) + ".");
  }
  if (config.recurrent_layers() == 0) return;
  if (config.attention_layers() == 0) {
    throw bad_input("The model has recurrent layers only; at least one layer of attention is needed.");
  }
  if (config.conv_taps != 0) return check_taps("short convolution", config.conv_taps);
  check_delta_net(config.delta_net);
}

/// That each layer without keys and values has one before it that has them.
void check_shared_kv(const ModelConfig& config) {
  if (config.shared_kv_layers == 0) return;
  if (config.shared_kv_layers >= config.layers) {
    throw bad_input("The model has " + std::to_string(config.shared_kv_layers) +
                    " layers without keys and values of their own; fewer than its " + std::to_string(config.layers) +
                    " layers are allowed.");
  }
  for (uint32_t n = config.layers - config.shared_kv_layers; n < config.layers; ++n) {
    if (config.kv_layer_of(n) == n) {
      throw bad_input("Layer " + std::to_string(n) + " of the model has no keys and values, and no layer " +
                      (config.turns_locally_in(n) ? "with a window" : "that sees the whole text") +
                      " before it has any.");
    }
  }
}

void check_gemma(const ModelConfig& config) {
  check_shared_kv(config);
  if (config.layer_inputs != 0) check_count("width of the inputs of layers", config.layer_inputs, max_ffn);
  if (config.local_head_dim != 0) check_head_dim("head dimension of layers with a window", config.local_head_dim);
  if (config.query_width != 0) check_real("query_pre_attn_scalar", config.query_width, 0, 1e6);
  if (config.attention_softcap != 0) check_real("attn_logit_softcapping", config.attention_softcap, 0, most_limit);
  if (config.logit_softcap != 0) check_real("final_logit_softcapping", config.logit_softcap, 0, most_limit);
  if (config.local_rope_theta != 0 || config.has_local_rope())
    check_real("local rope theta", config.local_rope_theta, 1, 1e15);
}

}  // namespace

void check_layer_count(uint32_t layers) {
  check_count("layer count", layers, max_layers);
}

void validate_transformer(const ModelConfig& config) {
  check_layer_count(config.layers);
  check_count("hidden size", config.hidden, max_hidden);
  check_all_heads(config);
  check_head_dim("head dimension", config.head_dim);
  check_ffn(config);
  check_experts_of(config);
  check_router(config);
  check_count("context length", config.max_context, max_positions);
  check_real("RMS norm epsilon", config.rms_eps, 0, 0.1);
  check_real("rope theta", config.rope_theta, 1, 1e15);
  check_gemma(config);
  check_turned_part(config);
  check_latent(config);
  check_hybrid(config);
  check_scaling(config);
}

void validate_config(const ModelConfig& config) {
  validate_transformer(config);
  check_count("vocabulary size", config.vocab, max_vocab);
  if (config.bos) check_token("bos token", *config.bos, config.vocab);
  for (const uint32_t id : config.eos) check_token("eos token", id, config.vocab);
}

void refuse_other(const std::string& field, uint32_t value, uint32_t supported) {
  if (value == supported) return;
  throw bad_input("The " + field + " is " + std::to_string(value) + "; only " + std::to_string(supported) +
                  " is supported.");
}

}  // namespace canopy
