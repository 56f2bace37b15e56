#include "engine/format/hybrids.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <unordered_set>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/routed_experts.h"

namespace canopy {

using nlohmann::json;

namespace {

std::vector<bool> read_kinds(const JsonFields& fields, uint32_t layers) {
  if (!fields.has("layer_types")) {
    const uint32_t step = fields.u32_or("full_attention_interval", kUsualAttentionStep);
    return recurrent_layers(layers, checked_layer_step(step, "field 'full_attention_interval' of " + fields.what()));
  }
  return fields.of_layers("layer_types", layers, "linear_attention", "full_attention");
}

/// Of the keys "<prefix>.ssm....", which delta nets and scans have alike.
DeltaNetConfig read_gguf_state_sizes(const GgufFile& file, std::string_view prefix) {
  const auto full = [&](std::string_view key) { return std::string(prefix) + ".ssm." + std::string(key); };
  DeltaNetConfig net;
  net.key_heads = file.u32(full("group_count"));
  net.value_heads = file.u32(full("time_step_rank"));
  net.key_dim = file.u32(full("state_size"));
  net.taps = file.u32(full("conv_kernel"));
  const uint32_t inner = file.u32(full("inner_size"));
  if (net.value_heads == 0 || inner % net.value_heads != 0) {
    throw bad_input("The metadata '" + full("inner_size") + "' is " + std::to_string(inner) + ", no multiple of '" +
                    full("time_step_rank") + "', " + std::to_string(net.value_heads) + ".");
  }
  net.value_dim = inner / net.value_heads;
  return net;
}

}  // namespace

void read_hf_hybrid(const JsonFields& fields, ModelConfig& config) {
  config.recurrent = read_kinds(fields, config.layers);
  config.delta_net = {.key_heads = fields.u32("linear_num_key_heads"),
                      .value_heads = fields.u32("linear_num_value_heads"),
                      .key_dim = fields.u32("linear_key_head_dim"),
                      .value_dim = fields.u32("linear_value_head_dim"),
                      .taps = fields.u32("linear_conv_kernel_dim"),
                      .has_log_rates = true};
  config.has_output_gate = fields.boolean_or("attn_output_gate", true);
  config.has_trained_form = true;
}

void read_gguf_hybrid(const GgufFile& file, std::string_view prefix, ModelConfig& config) {
  const auto key = [&](const char* name) { return std::string(prefix) + "." + name; };
  config.recurrent = file.booleans(key("attention.recurrent_layers"));  // of newer files
  if (!config.recurrent.empty() && config.recurrent.size() != config.layers) {
    throw bad_input("The metadata '" + key("attention.recurrent_layers") + "' has " +
                    std::to_string(config.recurrent.size()) + " elements; " + std::to_string(config.layers) +
                    " are expected, one a layer.");
  }
  leave_out_further_layers(file, prefix, config);
  const uint32_t step = file.u32_if(key("full_attention_interval")).value_or(kUsualAttentionStep);
  const uint32_t checked = checked_layer_step(step, "metadata '" + key("full_attention_interval") + "'");
  config.recurrent.resize(config.recurrent.empty() ? 0 : config.layers);
  if (config.recurrent.empty()) config.recurrent = recurrent_layers(config.layers, checked);
  config.delta_net = read_gguf_state_sizes(file, prefix);
  config.delta_net.tiled = prefix != "qwen3next";  // of others the converter puts the value heads in another order
  config.has_output_gate = true;
}

namespace {

/// Published models put the limits of a scan's steps, where they name them, at 0 and at infinity.
void refuse_step_limits(const JsonFields& fields) {
  if (!fields.has("time_step_limit")) return;
  const json& limits = fields.list("time_step_limit");
  const bool is_pair = limits.size() == 2 && limits[0].is_number() && limits[1].is_number();
  if (is_pair && limits[0].get<double>() == 0 && std::isinf(limits[1].get<double>()) && limits[1].get<double>() > 0) {
    return;
  }
  throw bad_input("The field 'time_step_limit' of config.json is " + printable(limits.dump(), 80) +
                  "; only [0.0, Infinity] is supported.");
}

DeltaNetConfig read_gguf_scans(const GgufFile& file, std::string_view prefix) {
  DeltaNetConfig net = read_gguf_state_sizes(file, prefix);
  net.scans = true;
  net.has_conv_bias = std::ranges::any_of(
      file.tensors(), [](const TensorView& tensor) { return tensor.name.ends_with(".ssm_conv1d.bias"); });
  return net;
}

constexpr double kLeastFactor = 1e-3, kMostFactor = 1e3;

/// `field`: "field 'residual_multiplier' of config.json".
double checked_factor(const std::string& field, double value) {
  if (value >= kLeastFactor && value <= kMostFactor) return value;
  throw bad_input("The " + field + " is " + json(value).dump() + "; numbers from 0.001 to 1000 are allowed.");
}

/// What a file multiplies by, as config.json and GGUF name it alike.
struct Factors {
  double embedding = 1;
  double residual = 1;   // what mixers and feed-forwards give
  double attention = 0;  // products of queries and keys; 0: as usual
  double logits = 1;     // divided by
};

void set_factors(const Factors& factors, ModelConfig& config) {
  config.embedding_scale = static_cast<float>(factors.embedding);
  config.residual_scale = static_cast<float>(1 / factors.residual);
  config.logit_divisor = static_cast<float>(factors.logits);
  if (factors.attention != 0) config.query_width = 1 / (factors.attention * factors.attention);
}

void set_experts(uint32_t experts, uint32_t used, uint32_t width, uint32_t shared_width, ModelConfig& config) {
  config.experts = experts;
  config.experts_used = used;
  config.expert_ffn = width;
  config.shared_ffn = shared_width;
  config.has_experts.assign(config.layers, true);
  config.gates_shared_expert = false;
  config.shares_among_chosen = true;
}

void read_hf_scans(const JsonFields& fields, ModelConfig& config) {
  config.delta_net = {.key_heads = fields.u32("mamba_n_groups"),
                      .value_heads = fields.u32("mamba_n_heads"),
                      .key_dim = fields.u32("mamba_d_state"),
                      .value_dim = fields.u32("mamba_d_head"),
                      .taps = fields.u32("mamba_d_conv"),
                      .scans = true,
                      .has_conv_bias = fields.boolean_or("mamba_conv_bias", true),
                      .has_log_rates = true};
  // Of several groups the norm behind the scan would be of all of them together.
  refuse_other("field 'mamba_n_groups' of config.json", config.delta_net.key_heads, 1);
  const uint64_t width = uint64_t{fields.u32_or("mamba_expand", 2)} * config.hidden;
  const uint64_t heads = uint64_t{config.delta_net.value_heads} * config.delta_net.value_dim;
  if (width != heads) {
    throw bad_input("The field 'mamba_n_heads' of config.json is " + std::to_string(config.delta_net.value_heads) +
                    ", and 'mamba_d_head' " + std::to_string(config.delta_net.value_dim) +
                    "; their product must be 'mamba_expand' times 'hidden_size', " + std::to_string(width) + ".");
  }
  if (fields.boolean_or("mamba_proj_bias", false)) {
    throw bad_input("The field 'mamba_proj_bias' of config.json is true; biases are not supported.");
  }
  refuse_step_limits(fields);
}

}  // namespace

void read_hf_granite(const JsonFields& fields, ModelConfig& config) {
  const auto factor = [&](const char* name) {
    return checked_factor("field '" + std::string(name) + "' of config.json", fields.number_or(name, 1));
  };
  set_factors({.embedding = factor("embedding_multiplier"),
               .residual = factor("residual_multiplier"),
               .attention = factor("attention_multiplier"),
               .logits = factor("logits_scaling")},
              config);
  if (config.architecture == "granite") return;
  config.recurrent = fields.of_layers("layer_types", config.layers, "mamba", "attention");
  if (config.recurrent_layers() > 0) read_hf_scans(fields, config);
  if (fields.text_or("position_embedding_type", "nope") != "rope") config.rotates.assign(config.layers, false);
  const uint32_t shared = fields.u32("shared_intermediate_size");
  if (fields.u32_or("num_local_experts", 0) == 0) {
    config.ffn = shared;
  } else {
    const uint32_t used = fields.u32("num_experts_per_tok"), width = fields.u32("intermediate_size");
    set_experts(fields.u32("num_local_experts"), used, width, shared, config);
  }
}

void read_gguf_granite(const GgufFile& file, std::string_view prefix, ModelConfig& config) {
  const auto full = [&](std::string_view key) { return std::string(prefix) + "." + std::string(key); };
  const auto u32_or = [&](std::string_view key, uint32_t other) { return file.u32_if(full(key)).value_or(other); };
  if (std::ranges::find(config.layer_kv_heads, 0u) != config.layer_kv_heads.end()) {
    for (const uint32_t heads : config.layer_kv_heads) config.recurrent.push_back(heads == 0);
    config.delta_net = read_gguf_scans(file, prefix);
    refuse_other("metadata '" + full("ssm.group_count") + "'", config.delta_net.key_heads, 1);
  }
  // As llama.cpp reads it: a word of the scaling says whether positions are turned at all.
  if (!file.boolean_if(full("rope.scaling.finetuned")).value_or(true)) config.rotates.assign(config.layers, false);
  const auto factor = [&](const char* key) {
    return checked_factor("metadata '" + full(key) + "'", file.number_if(full(key)).value_or(1));
  };
  const bool has_scale = file.number_if(full("attention.scale")).value_or(0) != 0;
  set_factors({.embedding = factor("embedding_scale"),
               .residual = factor("residual_scale"),
               .attention = has_scale ? factor("attention.scale") : 0,
               .logits = factor("logit_scale")},
              config);
  if (u32_or("expert_count", 0) == 0) return;
  const uint32_t width = u32_or("expert_feed_forward_length", config.ffn);
  set_experts(file.u32(full("expert_count")), file.u32(full("expert_used_count")), width,
              u32_or("expert_shared_feed_forward_length", 0), config);
}

std::vector<FusedTensor> fused_granite_tensors(const ModelConfig& config) {
  std::vector<FusedTensor> result;
  if (config.architecture == "granite") return result;
  for (uint32_t n = 0; n < config.layers; ++n) {
    const std::string layer = "blk." + std::to_string(n) + ".";
    const bool has_experts = config.layer_has_experts(n);
    const std::string behind = has_experts ? "_shexp" : "";
    const uint32_t width = has_experts ? config.shared_ffn : config.ffn_of(n), hidden = config.hidden;
    result.push_back({layer + "ffn_gate_up_shexp",
                      {{layer + "ffn_gate" + behind, width, hidden}, {layer + "ffn_up" + behind, width, hidden}}});
    result.push_back({layer + "ffn_down_shexp", {{layer + "ffn_down" + behind, hidden, width}}});
    if (!has_experts) continue;
    FusedTensor upper{layer + "ffn_gate_up_exps", {}, false, config.experts};
    FusedTensor lower{layer + "ffn_down_exps", {}, false, config.experts};
    for (uint32_t e = 0; e < config.experts; ++e) {
      const std::string number = "." + std::to_string(e);
      upper.parts.push_back({layer + "ffn_gate" + number, config.expert_ffn, hidden});
      upper.parts.push_back({layer + "ffn_up" + number, config.expert_ffn, hidden});
      lower.parts.push_back({layer + "ffn_down" + number, hidden, config.expert_ffn});
    }
    result.push_back(std::move(upper));
    result.push_back(std::move(lower));
  }
  return result;
}

namespace {

void require_function(const JsonFields& fields, const char* field, std::string_view allowed) {
  const std::string given = fields.text_or(field, allowed);
  if (given == allowed) return;
  throw bad_input("The field '" + std::string(field) + "' of config.json is '" + printable(given) + "'; only " +
                  std::string(allowed) + " is supported.");
}

void refuse_true(const JsonFields& fields, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) {
    if (!fields.boolean_or(flag, false)) continue;
    throw bad_input("The field '" + std::string(flag) + "' of config.json is true; biases are not supported.");
  }
}

/// Of models with experts: their router and the ones that every row goes through.
void set_router(ModelConfig& config) {
  config.gates_shared_expert = false;
  config.router_has_sigmoid = config.has_choice_bias = true;
}

}  // namespace

void set_nemotron_layers(std::string_view pattern, ModelConfig& config) {
  for (const char kind : pattern) {
    if (std::string_view("M*E-").find(kind) == std::string_view::npos) {
      throw bad_input("The pattern of the model's layers has '" + printable(std::string(1, kind)) +
                      "'; M, *, E and - are supported.");
    }
    config.recurrent.push_back(kind == 'M');
    config.has_mixer.push_back(kind == 'M' || kind == '*');
    config.has_feed_forward.push_back(kind == 'E' || kind == '-');
    config.has_experts.push_back(kind == 'E');
  }
  if (config.layers_with_experts() == 0) config.has_experts.clear();
  config.rotates.assign(config.layers, false);
  config.has_square_relu = true;
}

json complete_nemotron(const json& object) {
  const JsonFields given(object, "config.json");
  json fields = object;
  if (!given.has("rms_norm_eps")) fields["rms_norm_eps"] = given.number("layer_norm_epsilon");
  fields.erase("partial_rotary_factor");  // no layer turns its heads
  return fields;
}

void read_hf_nemotron(const JsonFields& fields, ModelConfig& config) {
  const std::string pattern = fields.text("hybrid_override_pattern");
  if (pattern.size() != config.layers) {
    throw bad_input("The field 'hybrid_override_pattern' of config.json has " + std::to_string(pattern.size()) +
                    " letters; the model has " + std::to_string(config.layers) + " layers.");
  }
  with_context("The field 'hybrid_override_pattern' of config.json", [&] { set_nemotron_layers(pattern, config); });
  require_function(fields, "mlp_hidden_act", "relu2");
  require_function(fields, "mamba_hidden_act", "silu");
  refuse_true(fields, {"use_bias", "mamba_proj_bias"});
  refuse_step_limits(fields);
  if (config.recurrent_layers() > 0) {
    config.delta_net = {.key_heads = fields.u32("n_groups"),
                        .value_heads = fields.u32("mamba_num_heads"),
                        .key_dim = fields.u32("ssm_state_size"),
                        .value_dim = fields.u32("mamba_head_dim"),
                        .taps = fields.u32("conv_kernel"),
                        .scans = true,
                        .has_conv_bias = fields.boolean_or("use_conv_bias", true),
                        .has_log_rates = true};
  }
  if (config.has_experts.empty()) return;
  if (fields.u32_or("moe_latent_size", 0) != 0) {
    throw bad_input("The field 'moe_latent_size' of config.json is " + std::to_string(fields.u32("moe_latent_size")) +
                    "; experts of latents are not supported.");
  }
  config.experts = fields.u32("n_routed_experts");
  config.experts_used = fields.u32("num_experts_per_tok");
  config.expert_ffn = fields.u32("moe_intermediate_size");
  if (fields.u32_or("n_shared_experts", 1) != 0) {
    config.shared_ffn = fields.u32_or("moe_shared_expert_intermediate_size", 0);  // of all of them
  }
  set_router(config);
  config.shares_among_chosen = fields.boolean_or("norm_topk_prob", true);
  config.share_factor = static_cast<float>(fields.number_or("routed_scaling_factor", 1));
  config.expert_groups = fields.u32_or("n_group", 1);
  config.expert_groups_used = fields.u32_or("topk_group", 1);
  if (config.ffn == 0) config.ffn = config.expert_ffn;  // of no layer
}

void read_gguf_nemotron(const GgufFile& file, std::string_view prefix, ModelConfig& config) {
  const auto full = [&](std::string_view key) { return std::string(prefix) + "." + std::string(key); };
  const auto u32_or = [&](std::string_view key, uint32_t other) { return file.u32_if(full(key)).value_or(other); };
  std::unordered_set<std::string_view> names;
  for (const TensorView& tensor : file.tensors()) names.insert(tensor.name);
  // Of layers that are alike no list is kept.
  const auto number_of = [&](const std::vector<uint32_t>& of_layers, uint32_t of_all, uint32_t n) {
    return of_layers.empty() ? of_all : of_layers[n];
  };
  std::string pattern;
  for (uint32_t n = 0; n < config.layers; ++n) {
    const bool has_heads = number_of(config.layer_kv_heads, config.kv_heads, n) != 0;
    const bool has_width = number_of(config.layer_ffn, config.ffn, n) != 0;
    if (has_heads && has_width) {
      throw bad_input("Layer " + std::to_string(n) + " has heads in the metadata '" + full("attention.head_count_kv") +
                      "' and a width in '" + full("feed_forward_length") + "'; one of both is allowed.");
    }
    const bool has_router = has_width && names.contains("blk." + std::to_string(n) + ".ffn_gate_inp.weight");
    pattern += has_heads ? '*' : has_router ? 'E' : has_width ? '-' : 'M';
  }
  set_nemotron_layers(pattern, config);
  for (uint32_t n = 0; n < config.layer_ffn.size(); ++n) {
    if (pattern[n] != '-') config.layer_ffn[n] = config.ffn;
  }
  if (std::ranges::all_of(config.layer_ffn, [&](uint32_t width) { return width == config.ffn; })) {
    config.layer_ffn.clear();
  }
  if (config.recurrent_layers() > 0) config.delta_net = read_gguf_scans(file, prefix);
  if (config.has_experts.empty()) return;
  config.experts = file.u32(full("expert_count"));
  config.experts_used = file.u32(full("expert_used_count"));
  config.expert_ffn = file.u32(full("expert_feed_forward_length"));
  config.shared_ffn = u32_or("expert_shared_count", 1) == 0 ? 0 : u32_or("expert_shared_feed_forward_length", 0);
  constexpr uint32_t sigmoid = 2;
  if (const uint32_t function = u32_or("expert_gating_func", sigmoid); function != sigmoid) {
    throw bad_input("The metadata '" + full("expert_gating_func") + "' is " + std::to_string(function) +
                    "; only 2 (sigmoid) is supported.");
  }
  set_router(config);
  config.shares_among_chosen = file.boolean_if(full("expert_weights_norm")).value_or(true);
  config.share_factor = static_cast<float>(file.number_if(full("expert_weights_scale")).value_or(1));
  config.expert_groups = u32_or("expert_group_count", 1);
  config.expert_groups_used = u32_or("expert_group_used_count", 1);
}

namespace {

/// Two thirds of what is stated, times a factor, up to a multiple, but where the file says that it is the size itself.
/// Where the factor is null, neither that nor the multiple counts.
uint64_t feed_forward_size(const json& object) {
  const JsonFields fields(object, "config.json");
  const uint64_t stated = fields.u32(fields.has("block_ff_dim") ? "block_ff_dim" : "intermediate_size");
  if (!fields.boolean_or("block_auto_adjust_ff_dim", true)) return stated;
  const auto stated_factor = object.find("block_ffn_dim_multiplier");
  if (stated_factor != object.end() && stated_factor->is_null()) return 2 * stated / 3;
  const uint32_t multiple = fields.u32_or("block_multiple_of", 256);
  if (multiple == 0) throw bad_input("The field 'block_multiple_of' of config.json is 0; 1 or more is allowed.");
  const double factor = fields.number_or("block_ffn_dim_multiplier", 1);
  if (!(factor > 0 && factor <= 16)) {
    throw bad_input("The field 'block_ffn_dim_multiplier' of config.json is " + json(factor).dump() +
                    "; numbers above 0, up to 16, are allowed.");
  }
  const auto cut = static_cast<uint64_t>(factor * static_cast<double>(2 * stated / 3));
  return (cut + multiple - 1) / multiple * multiple;
}

/// By layer, whether it is a convolution; without any of the two lists none is.
std::vector<bool> convolutions(const JsonFields& fields, uint32_t layers) {
  if (fields.has("layer_types")) return fields.of_layers("layer_types", layers, "conv", "full_attention");
  if (!fields.has("full_attn_idxs")) return std::vector<bool>(layers, false);
  std::vector<bool> convolves(layers, true);
  for (const json& entry : fields.list("full_attn_idxs")) {
    if (!entry.is_number_unsigned() || entry.get<uint64_t>() >= layers) {
      throw bad_input("The field 'full_attn_idxs' of config.json holds " + printable(entry.dump(), 40) +
                      "; numbers of layers, 0 to " + std::to_string(layers - 1) + ", are allowed.");
    }
    convolves[entry.get<uint64_t>()] = false;
  }
  return convolves;
}

/// `field`: of the length of the convolutions, for messages.
void set_convolutions(std::vector<bool> convolves, uint32_t taps, const std::string& field, ModelConfig& config) {
  if (std::ranges::find(convolves, true) == convolves.end()) return;
  if (taps == 0) throw bad_input("The " + field + " is 0; convolutions of 2 or more positions are allowed.");
  config.recurrent = std::move(convolves);
  config.conv_taps = taps;
}

}  // namespace

json complete_lfm2(const json& object) {
  const JsonFields given(object, "config.json");
  json fields = object;
  fields["rms_norm_eps"] = given.number_or("norm_eps", 1e-5);
  if (given.has("tie_embedding")) fields["tie_word_embeddings"] = given.boolean_or("tie_embedding", true);
  fields["intermediate_size"] = feed_forward_size(object);
  return fields;
}

void read_hf_lfm2(const JsonFields& fields, ModelConfig& config) {
  if (fields.boolean_or("conv_bias", false)) {
    throw bad_input("The field 'conv_bias' of config.json is true; biases are not supported.");
  }
  set_convolutions(convolutions(fields, config.layers), fields.u32_or("conv_L_cache", 3),
                   "field 'conv_L_cache' of config.json", config);
}

void read_gguf_lfm2(const GgufFile& file, std::string_view prefix, ModelConfig& config) {
  const std::string key = std::string(prefix) + ".shortconv.l_cache";
  std::vector<bool> convolves;
  for (const uint32_t heads : config.layer_kv_heads) convolves.push_back(heads == 0);
  set_convolutions(std::move(convolves), file.u32(key), "metadata '" + key + "'", config);
}

}  // namespace canopy
