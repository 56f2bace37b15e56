#include "engine/format/gemma.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/architecture.h"

namespace canopy {
namespace {

using nlohmann::json;

constexpr double kLocalTheta = 10000;
constexpr uint32_t kUsualStep = 6;  // of Gemma 3: each so many-th layer sees the whole text
constexpr const char* kActivation = "gelu_pytorch_tanh";
// Hidden states grow into the hundred thousands, beyond what halves hold. A power of two changes no bit of a result.
constexpr float kResidualScale = 1.0f / 256;

/// Gemma2Config and Gemma3TextConfig of transformers.
json usual_fields(bool is_gemma2) {
  json fields = {{"hidden_size", 2304u},      {"intermediate_size", 9216u},       {"num_hidden_layers", 26u},
                 {"num_attention_heads", 8u}, {"num_key_value_heads", 4u},        {"head_dim", 256u},
                 {"rms_norm_eps", 1e-6},      {"hidden_activation", kActivation}, {"query_pre_attn_scalar", 256u},
                 {"sliding_window", 4096u},   {"tie_word_embeddings", true}};
  if (is_gemma2) {
    fields.update({{"vocab_size", 256000u},
                   {"max_position_embeddings", 8192u},
                   {"rope_theta", 10000.0},
                   {"attn_logit_softcapping", 50.0},
                   {"final_logit_softcapping", 30.0}});
  } else {
    fields.update({{"vocab_size", 262208u},
                   {"max_position_embeddings", 131072u},
                   {"rope_theta", 1000000.0},
                   {"rope_local_base_freq", kLocalTheta}});
  }
  return fields;
}

/// Newer files have a rotation for each kind of layer.
void flatten_rotations(json& fields) {
  const JsonFields whole(fields, "config.json");
  const json* rotations = whole.object("rope_parameters");
  if (rotations == nullptr || !rotations->contains("full_attention")) return;
  const JsonFields by_kind(*rotations, "config.json's rope_parameters");
  json global = json::object(), local = json::object();
  if (const json* full = by_kind.object("full_attention")) global = *full;
  if (const json* sliding = by_kind.object("sliding_attention")) local = *sliding;
  const JsonFields of_local(local, "config.json's rope_parameters of sliding_attention");
  const std::string kind = of_local.text_or("rope_type", "default");
  if (kind != "default") {
    throw bad_input("The field 'rope_type' of " + of_local.what() + " is '" + printable(kind) +
                    "'; default is supported.");
  }
  fields["rope_local_base_freq"] = of_local.number_or("rope_theta", kLocalTheta);
  fields["rope_parameters"] = std::move(global);
}

/// By layer: whether it has a window. Gemma 2: each second, from the first on; Gemma 3: all but each `step`-th.
std::vector<bool> sliding_layers(uint32_t layers, bool is_gemma2, uint32_t step) {
  std::vector<bool> slides;
  for (uint32_t n = 0; n < layers; ++n) slides.push_back(is_gemma2 ? n % 2 == 0 : (n + 1) % step != 0);
  return slides;
}

/// By the metadata `pattern`: a step, or a list with an entry for each layer.
std::vector<bool> sliding_gguf_layers(const GgufFile& file, const std::string& pattern, uint32_t layers,
                                      bool is_gemma2) {
  const GgufValue* value = file.find(pattern);
  if (value == nullptr || value->type != GgufType::array) {
    const uint32_t step = checked_layer_step(file.u32_if(pattern).value_or(kUsualStep), "metadata '" + pattern + "'");
    return sliding_layers(std::min(layers, 1u << 16), is_gemma2, step);  // validate_config bounds them
  }
  std::vector<bool> slides = file.booleans(pattern);
  if (slides.size() == layers) return slides;
  throw bad_input("The metadata '" + pattern + "' has " + std::to_string(slides.size()) + " entries; the model has " +
                  std::to_string(layers) + " layers.");
}

void set_gemma(ModelConfig& config) {
  config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.hidden)));
  config.residual_scale = kResidualScale;
  config.has_post_norms = true;
}

void set_windows(const std::vector<bool>& slides, uint32_t window, ModelConfig& config) {
  if (window == 0 || window >= config.max_context) return;
  for (const bool has_window : slides) config.windows.push_back(has_window ? window : 0);
}

}  // namespace

json complete_gemma(const json& text_part, std::string_view architecture) {
  const bool is_gemma2 = architecture == "gemma2";
  const JsonFields given(text_part, "config.json");
  json fields = usual_fields(is_gemma2);
  for (const auto& [field, value] : text_part.items()) {
    if (!value.is_null() || field == "attn_logit_softcapping" || field == "final_logit_softcapping") {
      fields[field] = value;
    }
  }
  fields.erase("hidden_act");  // of the first files, and not what was meant: hidden_activation is
  flatten_rotations(fields);
  if (given.has("layer_types")) return fields;
  const JsonFields whole(fields, "config.json");
  const char* step = whole.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
  const uint32_t layers = std::min(whole.u32("num_hidden_layers"), 1u << 16);  // validate_config bounds them
  json types = json::array();
  for (const bool slides : sliding_layers(
           layers, is_gemma2,
           checked_layer_step(whole.u32_or(step, kUsualStep), "field 'sliding_window_pattern' of config.json"))) {
    types.push_back(slides ? "sliding_attention" : "full_attention");
  }
  fields["layer_types"] = std::move(types);
  return fields;
}

void read_hf_gemma(const JsonFields& fields, ModelConfig& config) {
  set_gemma(config);
  config.has_trained_form = true;
  const std::string activation = fields.text("hidden_activation");
  if (activation != kActivation) {
    throw bad_input("The field 'hidden_activation' of config.json is '" + printable(activation) + "'; only " +
                    kActivation + " is supported.");
  }
  if (fields.boolean_or("use_bidirectional_attention", false)) {
    throw bad_input(
        "The field 'use_bidirectional_attention' of config.json is true: this is a model that makes embeddings of "
        "texts; it cannot write one.");
  }
  config.query_width = fields.number("query_pre_attn_scalar");
  config.attention_softcap = static_cast<float>(fields.number_or("attn_logit_softcapping", 0));
  config.logit_softcap = static_cast<float>(fields.number_or("final_logit_softcapping", 0));
  if (!fields.has("rope_local_base_freq")) return;
  config.local_rope_theta = fields.number("rope_local_base_freq");
  if (config.local_rope_theta > 1) return;
  throw bad_input("The field 'rope_local_base_freq' of config.json is " + json(config.local_rope_theta).dump() +
                  "; a number above 1 is allowed.");
}

void set_gemma3(uint32_t window, ModelConfig& config) {
  set_gemma(config);
  const std::vector<bool> slides = sliding_layers(config.layers, false, kUsualStep);
  set_windows(slides, window, config);
  if (window == 0) return;
  config.local_rope_theta = kLocalTheta;
  config.turns_locally = slides;
}

void read_gguf_gemma(const GgufFile& file, std::string_view architecture, ModelConfig& config) {
  const auto key = [&](const char* name) { return std::string(architecture) + "." + name; };
  const bool is_gemma2 = architecture == "gemma2";
  set_gemma(config);
  // No field says it: the largest model of each generation divides queries by the width of the residual stream for each
  // head, the others by that of a head.
  const bool is_largest = config.layers == (is_gemma2 ? 46 : 62);
  if (is_largest && config.heads != 0) config.query_width = static_cast<double>(config.hidden) / config.heads;
  config.attention_softcap =
      static_cast<float>(file.number_if(key("attn_logit_softcapping")).value_or(is_gemma2 ? 50 : 0));
  config.logit_softcap =
      static_cast<float>(file.number_if(key("final_logit_softcapping")).value_or(is_gemma2 ? 30 : 0));
  const std::vector<bool> slides =
      sliding_gguf_layers(file, key("attention.sliding_window_pattern"), config.layers, is_gemma2);
  const uint32_t window = file.u32_if(key("attention.sliding_window")).value_or(is_gemma2 ? 4096 : 0);
  set_windows(slides, window, config);
  if (is_gemma2 || window == 0) return;
  const auto other = file.number_if(key("rope.local.freq_base"));  // Ollama's name
  config.local_rope_theta = file.number_if(key("rope.freq_base_swa")).value_or(other.value_or(kLocalTheta));
  config.turns_locally = slides;
}

}  // namespace canopy
