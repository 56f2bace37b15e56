#include "engine/format/config_gguf.h"

#include <algorithm>
#include <array>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/dequantize.h"
#include "engine/format/gemma4.h"
#include "engine/format/hybrids.h"
#include "engine/format/latent_attention.h"
#include "engine/format/model_families.h"
#include "engine/format/model_file.h"
#include "engine/format/model_paths.h"
#include "engine/format/routed_experts.h"

namespace canopy {
namespace {

const TensorView* find_tensor(const GgufFile& file, std::string_view name) {
  for (const TensorView& tensor : file.tensors()) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

/// Whether some layer has such a tensor.
bool has_tensor_like(const GgufFile& file, std::string_view ending) {
  return std::ranges::any_of(file.tensors(), [&](const TensorView& tensor) { return tensor.name.ends_with(ending); });
}

/// Keys of the architecture: "llama.block_count".
class Keys {
 public:
  Keys(const GgufFile& file, std::string_view architecture) : file_(file), prefix_(std::string(architecture) + ".") {}

  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  uint32_t u32(std::string_view key) const { return file_.u32(full(key)); }
  uint32_t u32_or(std::string_view key, uint32_t fallback) const { return file_.u32_if(full(key)).value_or(fallback); }
  double number(std::string_view key) const { return file_.number(full(key)); }
  double number_or(std::string_view key, double fallback) const {
    return file_.number_if(full(key)).value_or(fallback);
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

/// A number of all layers, or one for each of them.
std::vector<uint32_t> by_layer(const GgufFile& file, const std::string& key, uint32_t layers) {
  const GgufValue* value = file.find(key);
  if (value == nullptr || value->type != GgufType::array) return {file.u32(key)};
  const std::vector<int32_t> given = file.i32s(key);
  if (given.size() != layers) {
    throw bad_input("The metadata '" + key + "' has " + std::to_string(given.size()) + " elements; " +
                    std::to_string(layers) + " are expected, one a layer.");
  }
  std::vector<uint32_t> result;
  for (size_t n = 0; n < given.size(); ++n) {
    if (given[n] < 0) {
      throw bad_input("Element " + std::to_string(n) + " of the metadata '" + key + "' is " + std::to_string(given[n]) +
                      "; negative numbers are not allowed.");
    }
    result.push_back(static_cast<uint32_t>(given[n]));
  }
  return result;
}

/// The largest of numbers by layer, which keep their list only where they differ.
uint32_t most_of(std::vector<uint32_t>& counts) {
  const uint32_t most = counts.empty() ? 0 : std::ranges::max(counts);
  if (std::ranges::all_of(counts, [most](uint32_t count) { return count == most; })) counts.clear();
  return most;
}

void read_feed_forward(const GgufFile& file, const std::string& key, ModelConfig& config) {
  config.layer_ffn = by_layer(file, key, config.layers);
  config.ffn = most_of(config.layer_ffn);
}

/// Arrays may state no heads of the layers of hybrids that are no attention.
void leave_out_others(ModelConfig& config) {
  for (std::vector<uint32_t>* heads : {&config.layer_heads, &config.layer_kv_heads}) {
    if (heads->empty()) continue;
    heads->resize(config.layers);  // of those that are read
    uint32_t& most = heads == &config.layer_heads ? config.heads : config.kv_heads;
    most = 0;
    for (uint32_t n = 0; n < config.layers; ++n) most = std::max(most, config.is_attention(n) ? (*heads)[n] : 0);
    for (uint32_t n = 0; n < config.layers; ++n) {
      if (!config.is_attention(n)) (*heads)[n] = most;
    }
    most_of(*heads);
  }
}

/// How many elements of a head are turned: all, or where `may_be_part`, as many as the file says.
void read_turned_part(const Keys& keys, bool may_be_part, ModelConfig& config) {
  const uint32_t turned = keys.u32_or("rope.dimension_count", config.head_dim);
  if (turned == config.head_dim) return;
  if (!may_be_part || turned == 0) {
    throw bad_input("The metadata '" + keys.full("rope.dimension_count") + "' is " + std::to_string(turned) + "; " +
                    (may_be_part ? "2 to " : "only ") + "the head dimension, " + std::to_string(config.head_dim) +
                    ", is supported.");
  }
  config.rotary_dim = turned;
}

void read_heads(const GgufFile& file, const Keys& keys, bool turns_part, ModelConfig& config) {
  const std::string of_keys = keys.full("attention.head_count_kv");
  config.layer_heads = by_layer(file, keys.full("attention.head_count"), config.layers);
  const auto some = std::ranges::find_if(config.layer_heads, [](uint32_t count) { return count != 0; });
  const uint32_t first = some == config.layer_heads.end() ? 0 : *some;  // of the first layer that has any
  config.layer_kv_heads = file.find(of_keys) == nullptr ? config.layer_heads : by_layer(file, of_keys, config.layers);
  config.heads = most_of(config.layer_heads);
  config.kv_heads = most_of(config.layer_kv_heads);
  if (config.heads == 0) return;  // validate_config says so
  const uint32_t key_length = keys.u32_or("attention.key_length", 0);
  if (key_length == 0 && config.hidden % first != 0) {
    throw bad_input("The model's hidden size " + std::to_string(config.hidden) + " is no multiple of its head count " +
                    std::to_string(first) + ", and '" + keys.full("attention.key_length") + "' is missing.");
  }
  config.head_dim = key_length != 0 ? key_length : config.hidden / first;
  const bool is_latent =
      file.find(keys.full("attention.kv_lora_rank")) != nullptr;  // whose values are part of its keys
  const uint32_t value_length = keys.u32_or("attention.value_length", config.head_dim);
  if (!is_latent && value_length != config.head_dim) {
    throw bad_input("The metadata '" + keys.full("attention.value_length") + "' is " + std::to_string(value_length) +
                    "; only the head dimension, " + std::to_string(config.head_dim) + ", is supported.");
  }
  read_turned_part(keys, turns_part, config);
}

/// A tensor of a divisor for each pair of a head; empty where there is none.
std::vector<float> read_divisors(const GgufFile& file, const std::string& name) {
  const TensorView* factors = find_tensor(file, name);
  if (factors == nullptr) return {};
  if (factors->type != TensorType::f32 || factors->rank != 1) {
    throw bad_input("The tensor '" + name + "' must be a vector of F32, but is " + factors->shape_text() + " of " +
                    std::string(to_string(factors->type)) + ".");
  }
  if (factors->elements() > 4096) {
    throw bad_input("The tensor '" + name + "' has " + std::to_string(factors->elements()) +
                    " elements; half a head is expected.");
  }
  std::vector<float> divisors(factors->elements());
  dequantize(factors->type, factors->bytes, divisors);
  return divisors;
}

void read_yarn(const Keys& keys, bool is_latent, uint32_t context, RopeScaling& scaling) {
  const auto refuse_other = [&](const char* key, double allowed) {
    const double value = keys.number_or(key, allowed);
    if (value == allowed) return;
    throw bad_input("The metadata '" + keys.full(key) + "' is " + std::to_string(value) + "; only " +
                    std::to_string(allowed) + " is supported.");
  };
  refuse_other("rope.scaling.yarn_ext_factor", 1);
  refuse_other("rope.scaling.yarn_attn_factor", 1);
  scaling.kind = RopeScaling::Kind::yarn;
  scaling.factor = keys.number("rope.scaling.factor");
  scaling.original_context = keys.u32_or("rope.scaling.original_context_length", context);
  refuse_other("rope.scaling.extrapolation_factor", 1);
  // Ollama's converters leave "yarn_" out.
  const auto beta = [&](const char* key, const char* other_key, double usual) {
    return keys.number_or(key, keys.number_or(other_key, usual));
  };
  scaling.beta_fast = beta("rope.scaling.yarn_beta_fast", "rope.scaling.beta_fast", scaling.beta_fast);
  scaling.beta_slow = beta("rope.scaling.yarn_beta_slow", "rope.scaling.beta_slow", scaling.beta_slow);
  // Of latent attention it says by what products of queries and keys grow (read_gguf_latent).
  const double multiplier = is_latent ? 0 : keys.number_or("rope.scaling.yarn_log_multiplier", 0);
  scaling.magnitude = keys.number_or("rope.scaling.attn_factor", 1) * yarn_magnitude(scaling.factor) /
                      yarn_magnitude(scaling.factor, multiplier);
}

/// Queries that grow with their position, in steps of the original context.
void read_query_growth(const Keys& keys, RopeScaling& scaling) {
  scaling.query_growth = keys.number_or("attention.temperature_scale", 0);
  if (scaling.query_growth == 0) return;
  scaling.original_context = keys.u32("rope.scaling.original_context_length");
  const uint32_t step = keys.u32_or("attention.temperature_length", scaling.original_context);
  if (step == scaling.original_context) return;
  throw bad_input("The metadata '" + keys.full("attention.temperature_length") + "' is " + std::to_string(step) +
                  "; only the original context, " + std::to_string(scaling.original_context) + ", is supported.");
}

/// What converters that copy config.json's type write, by the name of what it is in GGUF.
std::string_view gguf_scaling_type(const GgufFile& file, std::string_view stated) {
  if (stated == "su") return "longrope";
  if (stated == "default" || stated == "mrope") return "none";
  // Its divisors are in a tensor.
  if (stated == "llama3" && find_tensor(file, "rope_freqs.weight") != nullptr) return "none";
  return stated;
}

RopeScaling read_scaling(const GgufFile& file, const Keys& keys, ModelConfig& config) {
  const uint32_t context = config.max_context;
  RopeScaling scaling;
  const bool is_long = find_tensor(file, "rope_factors_long.weight") != nullptr;  // some files do not name the kind
  // Older files have a factor alone, under one of two names; 0 and 1 scale nothing.
  const double factor = keys.number_or("rope.scaling.factor", keys.number_or("rope.scale_linear", 0));
  const bool is_linear = !is_long && factor != 0 && factor != 1;
  const std::string_view kind =
      gguf_scaling_type(file, file.text_if(keys.full("rope.scaling.type")).value_or(is_linear ? "linear" : "none"));
  if (kind == "linear") {
    scaling.kind = RopeScaling::Kind::linear;
    scaling.factor = factor != 0 ? factor : keys.number("rope.scaling.factor");
  } else if (kind == "yarn") {
    read_yarn(keys, file.find(keys.full("attention.kv_lora_rank")) != nullptr, context, scaling);
  } else if (kind == "longrope" || (kind == "none" && is_long)) {
    scaling.kind = RopeScaling::Kind::longrope;
    scaling.divisors = read_divisors(file, "rope_factors_short.weight");
    scaling.long_divisors = read_divisors(file, "rope_factors_long.weight");
    scaling.original_context = keys.u32_or("rope.scaling.original_context_length", context);
    scaling.magnitude = keys.number_or("rope.scaling.attn_factor", 1);
  } else if (kind == "dynamic") {
    config.max_context = std::min(context, keys.u32_or("rope.scaling.original_context_length", context));
    note_dynamic_rope(config);
  } else if (kind != "none") {
    throw bad_input("The metadata '" + keys.full("rope.scaling.type") + "' is '" + printable(kind) +
                    "'; supported are none, linear, dynamic, yarn, longrope and frequency factors (rope_freqs).");
  }
  std::vector<float> divisors = read_divisors(file, "rope_freqs.weight");
  if (find_tensor(file, "rope_freqs.weight") == nullptr) return scaling;
  if (scaling.kind != RopeScaling::Kind::none) {
    throw bad_input("The model has both " + std::string(kind) +
                    " rope scaling and the tensor 'rope_freqs.weight'; one is supported.");
  }
  scaling.kind = RopeScaling::Kind::factors;
  scaling.divisors = std::move(divisors);
  return scaling;
}

uint32_t read_vocab(const GgufFile& file, const Keys& keys) {
  if (const auto stated = file.u32_if(keys.full("vocab_size"))) return *stated;
  const TensorView* embedding = find_tensor(file, "token_embd.weight");
  if (embedding == nullptr) throw bad_input("The tensor 'token_embd.weight' is missing.");
  return static_cast<uint32_t>(std::min<uint64_t>(embedding->rows(), UINT32_MAX));  // validate_config bounds it
}

/// The windows of attention; where a file does not say in which layers, the context ends where they would differ.
void read_window(const Keys& keys, Windows where, ModelConfig& config) {
  const uint32_t window = keys.u32_or("attention.sliding_window", 0);
  if (window == 0 || window >= config.max_context) return;
  if (where == Windows::in_all_layers) {
    config.windows.assign(config.layers, window);
    return;
  }
  if (where == Windows::in_even_layers) {
    for (uint32_t n = 0; n < config.layers; ++n) config.windows.push_back(n % 2 == 0 ? window : 0);
    return;
  }
  log_warning("The context is limited to the sliding window of " + std::to_string(window) + " positions.");
  config.max_context = window;
}

/// The keys of special tokens behind "tokenizer.ggml.". The last three are older names.
constexpr std::array<std::string_view, 19> special_id_keys = {
    "bos_token_id",       "eos_token_id",     "eot_token_id",     "eom_token_id",     "unknown_token_id",
    "seperator_token_id", "padding_token_id", "mask_token_id",    "cls_token_id",     "fim_pre_token_id",
    "fim_suf_token_id",   "fim_mid_token_id", "fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id",
    "separator_token_id", "prefix_token_id",  "suffix_token_id",  "middle_token_id"};

/// A number of the metadata; none for one below 0. The text is for messages.
struct StatedId {
  std::optional<uint64_t> id;
  std::string text;
};

/// The ids that a field names, one or a list of them; empty when absent. Throws for anything but whole numbers.
std::vector<StatedId> stated_ids(const GgufFile& file, const std::string& key) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return {};
  std::vector<StatedId> ids;
  const auto add_unsigned = [&](uint64_t id) { ids.push_back({id, std::to_string(id)}); };
  const auto add_signed = [&](int64_t id) {
    ids.push_back({id < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(id)), std::to_string(id)});
  };
  const bool is_list = value->type == GgufType::array;
  Reader reader(value->elements);
  for (uint64_t i = 0; i < (is_list ? value->count : 1); ++i) {
    switch (is_list ? value->element_type : value->type) {
      case GgufType::u8: add_unsigned(is_list ? reader.read<uint8_t>("an element") : value->unsigned_value); break;
      case GgufType::u16: add_unsigned(is_list ? reader.read<uint16_t>("an element") : value->unsigned_value); break;
      case GgufType::u32: add_unsigned(is_list ? reader.read<uint32_t>("an element") : value->unsigned_value); break;
      case GgufType::u64: add_unsigned(is_list ? reader.read<uint64_t>("an element") : value->unsigned_value); break;
      case GgufType::i8: add_signed(is_list ? reader.read<int8_t>("an element") : value->signed_value); break;
      case GgufType::i16: add_signed(is_list ? reader.read<int16_t>("an element") : value->signed_value); break;
      case GgufType::i32: add_signed(is_list ? reader.read<int32_t>("an element") : value->signed_value); break;
      case GgufType::i64: add_signed(is_list ? reader.read<int64_t>("an element") : value->signed_value); break;
      default: file.u32(key);  // says what is expected
    }
  }
  return ids;
}

/// Those of the ids that name a token: older converters write 4294967295 or -1 for none.
std::vector<uint32_t> special_ids(const GgufFile& file, std::string_view name, size_t tokens) {
  std::vector<uint32_t> found;
  for (const StatedId& stated : stated_ids(file, "tokenizer.ggml." + std::string(name))) {
    if (stated.id && *stated.id < tokens) found.push_back(static_cast<uint32_t>(*stated.id));
  }
  return found;
}

std::optional<uint32_t> special_id(const GgufFile& file, std::string_view name, size_t tokens) {
  const std::vector<uint32_t> found = special_ids(file, name, tokens);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

void warn_of_missing_ids(const GgufFile& file, size_t tokens) {
  for (const std::string_view name : special_id_keys) {
    const std::string key = "tokenizer.ggml." + std::string(name);
    for (const StatedId& stated : stated_ids(file, key)) {
      if (stated.id && *stated.id < tokens) continue;
      log_warning("The metadata '" + key + "' is " + stated.text + ", which is none of the " + std::to_string(tokens) +
                  " tokens of the vocabulary; it is ignored.");
    }
  }
}

/// Ids that end a reply: those stated, and tokens that end one by their name, which converters often leave unstated.
void read_eos(const GgufFile& file, std::span<const std::string_view> tokens, size_t limit, ModelConfig& config) {
  std::vector<uint32_t>& result = config.eos;
  NamedTokens named = named_tokens(tokens, file.i32s("tokenizer.ggml.token_type"));
  const auto add = [&](uint32_t id) {
    if (id >= limit || std::ranges::find(named.message_ends, id) != named.message_ends.end()) return;
    if (std::ranges::find(result, id) == result.end()) result.push_back(id);
  };
  for (const char* key :
       {"eos_token_id", "eot_token_id", "eom_token_id", "fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id"}) {
    for (const uint32_t id : special_ids(file, key, limit)) add(id);
  }
  for (const uint32_t id : named.ends) add(id);
  config.file_ends = std::move(named.file_ends);
}

void check_length(std::string_view key, size_t actual, size_t expected) {
  if (actual == 0 || actual == expected) return;
  throw bad_input("The metadata '" + std::string(key) + "' has " + std::to_string(actual) + " elements; " +
                  std::to_string(expected) + " are expected, one a token.");
}

void refuse_experts(const Keys& keys) {
  if (const uint32_t experts = keys.u32_or("expert_count", 0); experts > 0) {
    throw bad_input("The model has " + std::to_string(experts) +
                    " experts; mixtures of experts are not supported in this architecture.");
  }
}

/// Ollama's converters do not state it: then it is as many rows as the first layer's experts have.
uint32_t read_expert_ffn(const GgufFile& file, const Keys& keys) {
  constexpr const char* key = "expert_feed_forward_length";
  const TensorView* gates = find_tensor(file, "blk.0.ffn_gate_exps.weight");
  if (file.find(keys.full(key)) != nullptr || gates == nullptr || gates->rank != 3) return keys.u32(key);
  return static_cast<uint32_t>(std::min<uint64_t>(gates->shape[1], UINT32_MAX));  // validate_config bounds it
}

void read_experts(const GgufFile& file, const Keys& keys, bool is_hybrid, ModelConfig& config) {
  config.experts = keys.u32("expert_count");
  config.experts_used = keys.u32("expert_used_count");
  config.expert_ffn = read_expert_ffn(file, keys);
  const auto shares = file.boolean_if(keys.full("expert_weights_norm"));
  // The other name is Ollama's.
  config.shares_among_chosen = shares ? *shares : file.boolean_if(keys.full("norm_top_k_prob")).value_or(true);
  config.has_experts.assign(config.layers, true);
  const auto refuse_other = [&](const char* key, auto value, auto allowed) {
    if (value == allowed) return;
    throw bad_input("The metadata '" + keys.full(key) + "' is " + std::to_string(value) + "; only " +
                    std::to_string(allowed) + " is supported.");
  };
  constexpr uint32_t softmax = 1;
  refuse_other("expert_gating_func", keys.u32_or("expert_gating_func", softmax), softmax);
  refuse_other("expert_weights_scale", keys.number_or("expert_weights_scale", 1), 1.0);
  refuse_other("leading_dense_block_count", keys.u32_or("leading_dense_block_count", 0), 0u);
  if (is_hybrid) {
    config.shared_ffn = keys.u32("expert_shared_feed_forward_length");
    refuse_other("expert_shared_count", keys.u32_or("expert_shared_count", 1), 1u);
  } else {
    for (const char* key : {"expert_shared_count", "expert_shared_feed_forward_length"}) {
      refuse_other(key, keys.u32_or(key, 0), 0u);
    }
  }
  if (config.ffn == 0) config.ffn = config.expert_ffn;  // of no layer
}

}  // namespace

void read_gguf_transformer(const GgufFile& file, std::string_view prefix, ModelConfig& config, bool turns_part,
                           bool has_experts) {
  const Keys keys(file, prefix);
  config.name = printable(file.text_if("general.name").value_or(""));
  config.layers = keys.u32("block_count");
  check_layer_count(config.layers);
  config.hidden = keys.u32("embedding_length");
  const std::string feed_forward = keys.full("feed_forward_length");
  if (!has_experts || file.find(feed_forward) != nullptr) read_feed_forward(file, feed_forward, config);
  config.max_context = keys.u32("context_length");
  read_heads(file, keys, turns_part, config);
  constexpr const char* epsilon = "attention.layer_norm_rms_epsilon";
  if (prefix == "gemma3") {  // which Ollama's converter states in part, or by other names
    config.rms_eps = static_cast<float>(keys.number_or(epsilon, 1e-6));
    config.rope_theta = keys.number_or("rope.freq_base", keys.number_or("rope.global.freq_base", 1000000));
  } else {
    // Of Nemotron converters state it under the name that other norms have.
    const bool is_other = prefix.starts_with("nemotron") && file.find(keys.full(epsilon)) == nullptr;
    config.rms_eps = static_cast<float>(keys.number(is_other ? "attention.layer_norm_epsilon" : epsilon));
    config.rope_theta = keys.number_or("rope.freq_base", 10000);
  }
  config.rope_scaling = read_scaling(file, keys, config);
  read_query_growth(keys, config.rope_scaling);
}

ModelConfig read_gguf_config(const GgufFile& file) {
  refuse_gguf_that_is_no_model(file);
  const Architecture& architecture = architecture_by_name(file.text("general.architecture"));
  const Keys keys(file, architecture.name);
  ModelConfig config;
  config.architecture = architecture.name;
  read_gguf_transformer(file, architecture.name, config, true, architecture.has_experts);
  if (architecture.is_hybrid) {
    read_gguf_hybrid(file, architecture.name, config);
    leave_out_others(config);
  }
  if (architecture.is_lfm2) {
    read_gguf_lfm2(file, architecture.name, config);
    leave_out_others(config);
  }
  if (architecture.is_gemma4) read_gguf_gemma4(file, architecture.name, config);
  if (architecture.is_granite) {
    read_gguf_granite(file, architecture.name, config);
    leave_out_others(config);
  } else if (architecture.is_nemotron) {
    read_gguf_nemotron(file, architecture.name, config);
    leave_out_others(config);
  } else if (architecture.has_dense_start) {
    if (architecture.is_latent) read_gguf_latent(file, architecture.name, config);
    read_gguf_routed_experts(file, architecture.name, architecture.router_has_sigmoid, config);
  } else if (architecture.has_experts) {
    read_experts(file, keys, architecture.is_hybrid, config);
  } else if (!architecture.is_gemma4) {
    refuse_experts(keys);
  }
  if (architecture.is_gpt_oss) set_gguf_gpt_oss(config);
  if (architecture.is_gemma && !architecture.is_gemma4) read_gguf_gemma(file, architecture.name, config);
  config.vocab = read_vocab(file, keys);
  config.rope_layout = architecture.gguf_rope_layout;
  config.has_qkv_bias = architecture.is_glm4 ? has_tensor_like(file, ".attn_q.bias") : architecture.has_qkv_bias;
  config.has_output_bias = architecture.has_output_bias;
  config.has_qk_norm = architecture.is_glm4 ? has_tensor_like(file, ".attn_q_norm.weight") : architecture.has_qk_norm;
  config.tied_head = find_tensor(file, "output.weight") == nullptr;
  const std::vector<std::string_view> tokens = file.texts("tokenizer.ggml.tokens");
  const size_t limit = tokens.empty() ? config.vocab : std::min<size_t>(tokens.size(), config.vocab);
  config.bos = special_id(file, "bos_token_id", limit);
  read_eos(file, tokens, limit, config);
  if (!architecture.is_gemma) read_window(keys, architecture.gguf_window, config);
  validate_config(config);
  if (architecture.unrotated_step != 0) config.rotates = layers_that_rotate(config.layers, architecture.unrotated_step);
  return config;
}

TokenizerSource read_gguf_tokenizer(const GgufFile& file, uint32_t vocab) {
  TokenizerSource source;
  const auto model = file.text_if("tokenizer.ggml.model");
  if (!model) return source;  // weights without a tokenizer are legal
  source.kind = TokenizerSource::Kind::gguf;
  source.model = *model;
  source.pre = file.text_if("tokenizer.ggml.pre").value_or("");
  source.tokens = file.texts("tokenizer.ggml.tokens");
  source.merges = file.texts("tokenizer.ggml.merges");
  source.types = file.i32s("tokenizer.ggml.token_type");
  source.scores = file.f32s("tokenizer.ggml.scores");
  if (source.tokens.size() > vocab) {
    throw bad_input("The metadata 'tokenizer.ggml.tokens' has " + std::to_string(source.tokens.size()) +
                    " tokens, more than the " + std::to_string(vocab) + " of the model's vocabulary.");
  }
  check_length("tokenizer.ggml.token_type", source.types.size(), source.tokens.size());
  check_length("tokenizer.ggml.scores", source.scores.size(), source.tokens.size());
  const auto id = [&](const char* name) { return special_id(file, name, source.tokens.size()); };
  source.bos = id("bos_token_id");
  source.eos = id("eos_token_id");
  source.unknown = id("unknown_token_id");
  source.padding = id("padding_token_id");
  source.mask = id("mask_token_id");
  warn_of_missing_ids(file, source.tokens.size());
  source.add_bos = file.boolean_if("tokenizer.ggml.add_bos_token");
  source.add_eos = file.boolean_if("tokenizer.ggml.add_eos_token");
  source.add_space_prefix = file.boolean_if("tokenizer.ggml.add_space_prefix");
  source.control_strips_right = source.model == "llama" && file.text_if("general.architecture") == "phi3";
  source.chat_template = file.text_if("tokenizer.chat_template").value_or("");
  source.tool_template = file.text_if("tokenizer.chat_template.tool_use").value_or("");
  return source;
}

}  // namespace canopy
