#include "engine/format/gemma4.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/model_families.h"

namespace canopy {
namespace {

using nlohmann::json;

constexpr const char* kGelu = "gelu_pytorch_tanh";
constexpr double kFullTheta = 1000000, kSlidingTheta = 10000;
constexpr float kUnturned = 1e30f;  // what a GGUF file divides frequencies by where they are to be 0

/// K/V heads by layer: of those that slide, and of the others.
void set_kv_heads(const std::vector<bool>& slides, uint32_t sliding, uint32_t full, ModelConfig& config) {
  config.kv_heads = sliding;
  if (sliding == full || slides.empty()) return;
  for (const bool has_window : slides) config.layer_kv_heads.push_back(has_window ? sliding : full);
  config.kv_heads = std::ranges::max(config.layer_kv_heads);
}

/// Feed-forwards of the layers that read another's keys and values are twice as wide.
void set_wide_ends(ModelConfig& config) {
  const uint32_t narrow = config.ffn;
  if (narrow > UINT32_MAX / 2) return;  // validate_config refuses that
  for (uint32_t n = 0; n < config.layers; ++n) config.layer_ffn.push_back(config.has_own_kv(n) ? narrow : 2 * narrow);
  config.ffn = std::ranges::max(config.layer_ffn);
}

/// How much of each head turns in layers that see the whole text.
void read_part(const JsonFields& rotation, ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  const std::string kind = rotation.text_or("rope_type", "default");
  if (kind == "default") return;
  if (kind != "proportional") {
    throw bad_input("The field 'rope_type' of " + rotation.what() + " is '" + printable(kind) +
                    "'; default and proportional are supported.");
  }
  const double part = rotation.number_or("partial_rotary_factor", 1);
  if (!(part > 0 && part <= 1)) {
    throw bad_input("The field 'partial_rotary_factor' of " + rotation.what() + " is " + json(part).dump() +
                    "; numbers above 0, up to 1, are supported.");
  }
  scaling.kind = RopeScaling::Kind::proportional;
  scaling.factor = rotation.number_or("factor", 1);
  scaling.turned_pairs = static_cast<uint32_t>(std::floor(part * config.head_dim / 2));
}

void read_rotations(const JsonFields& fields, ModelConfig& config) {
  const json usual = {{"full_attention", {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.25}}},
                      {"sliding_attention", json::object()}};
  const json* given = fields.object("rope_parameters");
  const JsonFields kinds(given != nullptr ? *given : usual, "config.json's rope_parameters");
  const json none = json::object();
  const json* of_full = kinds.object("full_attention");
  const json* of_sliding = kinds.object("sliding_attention");
  const JsonFields full(of_full != nullptr ? *of_full : none, "config.json's rope_parameters of full_attention");
  const JsonFields sliding(of_sliding != nullptr ? *of_sliding : none,
                           "config.json's rope_parameters of sliding_attention");
  config.rope_theta = full.number_or("rope_theta", kFullTheta);
  read_part(full, config);
  config.local_rope_theta = sliding.number_or("rope_theta", kSlidingTheta);
  if (const std::string kind = sliding.text_or("rope_type", "default"); kind != "default") {
    throw bad_input("The field 'rope_type' of " + sliding.what() + " is '" + printable(kind) +
                    "'; default is supported.");
  }
  if (config.local_rope_theta > 1) return;
  throw bad_input("The field 'rope_theta' of " + sliding.what() + " is " + json(config.local_rope_theta).dump() +
                  "; a number above 1 is allowed.");
}

void refuse_both_ways(const JsonFields& fields) {
  const json* both_ways = fields.find("use_bidirectional_attention");
  if (both_ways == nullptr || *both_ways == false || *both_ways == "vision") return;  // of pictures alone
  throw bad_input("The field 'use_bidirectional_attention' of config.json is " + printable(both_ways->dump(), 40) +
                  ": this is a model that makes embeddings of texts; it cannot write one.");
}

bool has_tensor(const GgufFile& file, const std::string& name) {
  return std::ranges::find(file.tensors(), name, &TensorView::name) != file.tensors().end();
}

/// Experts beside the feed-forward of each layer: 26B-A4B.
void set_experts(uint32_t count, uint32_t used, uint32_t ffn, ModelConfig& config) {
  config.experts = count;
  config.experts_used = used;
  config.expert_ffn = ffn;
  config.has_experts.assign(config.layers, true);
  config.has_experts_beside = true;
}

/// GGUF has divisors of the frequencies: 1 of the pairs that turn, then what leaves nothing of a frequency.
void read_divided_pairs(ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  if (scaling.kind != RopeScaling::Kind::factors) {
    throw bad_input(
        "The tensor 'rope_freqs.weight' is missing, which says how much of a head turns; convert the model again or "
        "get "
        "another file of it.");
  }
  const auto end = std::ranges::find_if(scaling.divisors, [](float divisor) { return divisor != 1; });
  const auto is_unturned = [](float divisor) { return divisor >= kUnturned; };
  if (scaling.divisors.size() != config.head_dim / 2 || !std::all_of(end, scaling.divisors.end(), is_unturned)) {
    throw bad_input("The tensor 'rope_freqs.weight' has " + std::to_string(scaling.divisors.size()) +
                    " elements, which are expected to be " + std::to_string(config.head_dim / 2) +
                    ": first some of 1, then some of 1e30, which turn no pair.");
  }
  RopeScaling part;
  part.kind = RopeScaling::Kind::proportional;
  part.turned_pairs = static_cast<uint32_t>(end - scaling.divisors.begin());
  scaling = std::move(part);
}

/// Sizes of the heads of layers with a window, which must be the same under three names.
uint32_t read_local_head_dim(const GgufFile& file, const std::string& prefix, const ModelConfig& config) {
  const std::string key_length = prefix + "attention.key_length_swa";
  const uint32_t length = file.u32_if(key_length).value_or(config.head_dim);
  for (const char* key : {"attention.value_length_swa", "rope.dimension_count_swa"}) {
    const uint32_t other = file.u32_if(prefix + key).value_or(length);
    if (other == length) continue;
    throw bad_input("The metadata '" + prefix + key + "' is " + std::to_string(other) + "; only '" + key_length +
                    "', " + std::to_string(length) + ", is supported.");
  }
  if (length != 0) return length;
  throw bad_input("The metadata '" + key_length + "' is 0; a number of elements is expected.");
}

}  // namespace

std::vector<bool> gemma4_sliding_layers(uint32_t layers, uint32_t step) {
  std::vector<bool> slides;
  for (uint32_t n = 0; n < layers; ++n) slides.push_back((n + 1) % step != 0 && n + 1 != layers);
  return slides;
}

void set_gemma4(const std::vector<bool>& slides, uint32_t local_head_dim, ModelConfig& config) {
  set_gemma(config);
  config.query_width = 1;  // the norms of queries and keys scale their products
  config.has_v_norm = config.has_layer_scales = true;
  config.local_head_dim = local_head_dim == config.head_dim ? 0 : local_head_dim;
  if (config.local_rope_theta == 0) config.local_rope_theta = kSlidingTheta;
  config.turns_locally = slides;
}

json complete_gemma4(const json& text_part) {
  const JsonFields given(text_part, "config.json");
  json fields = text_part;
  if (given.has("layer_types")) return fields;
  json types = json::array();
  // validate_config bounds the layers
  for (const bool slides : gemma4_sliding_layers(std::min(given.u32("num_hidden_layers"), 1u << 16))) {
    types.push_back(slides ? "sliding_attention" : "full_attention");
  }
  fields["layer_types"] = std::move(types);
  return fields;
}

void read_hf_gemma4(const JsonFields& fields, const std::vector<bool>& slides, ModelConfig& config) {
  refuse_both_ways(fields);
  if (const std::string activation = fields.text_or("hidden_activation", kGelu); activation != kGelu) {
    throw bad_input("The field 'hidden_activation' of config.json is '" + printable(activation) + "'; only " + kGelu +
                    " is supported.");
  }
  const uint32_t local_head_dim = config.head_dim;
  if (local_head_dim == 0) throw bad_input("The field 'head_dim' of config.json is 0; it must be at least 2.");
  config.head_dim = fields.u32_or("global_head_dim", local_head_dim);
  const bool takes_keys = fields.boolean_or("attention_k_eq_v", false);
  const uint32_t heads = config.kv_heads;
  set_kv_heads(slides, heads, takes_keys ? fields.u32_or("num_global_key_value_heads", heads) : heads, config);
  for (const bool has_window : slides) {
    if (takes_keys) config.values_of_keys.push_back(!has_window);
  }
  config.layer_inputs = fields.u32_or("hidden_size_per_layer_input", 0);
  config.shared_kv_layers = fields.u32_or("num_kv_shared_layers", 0);
  if (fields.boolean_or("use_double_wide_mlp", false) && config.shared_kv_layers != 0) set_wide_ends(config);
  if (const uint32_t rows = fields.u32_or("vocab_size_per_layer_input", fields.u32("vocab_size"));
      config.layer_inputs != 0 && rows != fields.u32("vocab_size")) {
    throw bad_input("The field 'vocab_size_per_layer_input' of config.json is " + std::to_string(rows) + "; only " +
                    std::to_string(fields.u32("vocab_size")) + ", as 'vocab_size' is, is supported.");
  }
  if (fields.boolean_or("enable_moe_block", false)) {
    set_experts(fields.u32("num_experts"), fields.u32("top_k_experts"), fields.u32("moe_intermediate_size"), config);
  }
  read_rotations(fields, config);
  set_gemma4(slides, local_head_dim, config);
  config.logit_softcap = static_cast<float>(fields.number_or("final_logit_softcapping", 0));
}

void read_gguf_gemma4(const GgufFile& file, std::string_view prefix, ModelConfig& config) {
  const auto key = [&](const char* name) { return std::string(prefix) + "." + name; };
  const std::string pattern = key("attention.sliding_window_pattern");
  const std::vector<bool> slides = file.booleans(pattern);
  if (slides.size() != config.layers) {
    throw bad_input("The metadata '" + pattern + "' has " + std::to_string(slides.size()) + " entries; the model has " +
                    std::to_string(config.layers) + " layers.");
  }
  read_divided_pairs(config);
  config.local_rope_theta = file.number_if(key("rope.freq_base_swa")).value_or(kSlidingTheta);
  if (!(config.local_rope_theta > 1)) {
    throw bad_input("The metadata '" + key("rope.freq_base_swa") + "' is " + std::to_string(config.local_rope_theta) +
                    "; a number above 1 is allowed.");
  }
  set_gemma4(slides, read_local_head_dim(file, key(""), config), config);
  config.logit_softcap = static_cast<float>(file.number_if(key("final_logit_softcapping")).value_or(0));
  config.layer_inputs = file.u32_if(key("embedding_length_per_layer_input")).value_or(0);
  config.shared_kv_layers = file.u32_if(key("attention.shared_kv_layers")).value_or(0);
  if (const uint32_t experts = file.u32_if(key("expert_count")).value_or(0); experts != 0) {
    set_experts(experts, file.u32(key("expert_used_count")), file.u32(key("expert_feed_forward_length")), config);
  }
  const uint32_t window = file.u32(key("attention.sliding_window"));
  if (window == 0)
    throw bad_input("The metadata '" + key("attention.sliding_window") + "' is 0; it must be at least 1.");
  bool takes_keys = false;
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (window < config.max_context) config.windows.push_back(slides[n] ? window : 0);
    const bool has_values =
        slides[n] || !config.has_own_kv(n) || has_tensor(file, "blk." + std::to_string(n) + ".attn_v.weight");
    config.values_of_keys.push_back(!has_values);
    takes_keys |= !has_values;
  }
  if (!takes_keys) config.values_of_keys.clear();
}

}  // namespace canopy
