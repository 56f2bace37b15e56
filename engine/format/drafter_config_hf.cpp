#include "engine/format/drafter_config_hf.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/config_hf.h"
#include "engine/format/draft_vocabulary.h"
#include "engine/format/json_text.h"
#include "engine/format/tensor_names.h"

namespace canopy {
namespace {

using nlohmann::json;

constexpr std::string_view supported_class = "DFlashDraftModel";

std::string class_name(const JsonFields& fields) {
  const json& classes = fields.list("architectures");
  if (classes.size() != 1 || !classes.front().is_string()) {
    throw bad_input("The field 'architectures' of config.json must be a list of one class name.");
  }
  return classes.front().get<std::string>();
}

void require_class(const JsonFields& fields) {
  const std::string name = class_name(fields);
  if (name == supported_class) return;
  const std::string what = is_drafter_class(name)
                               ? "This is a drafter of the class '" + printable(name) + "', which is not supported"
                               : "This is a model of the class '" + printable(name) + "', not a drafter";
  throw bad_input(what + "; " + std::string(supported_class) + " is expected.");
}

/// What vLLM's speculators toolkit calls the algorithm of a drafter of its own form; empty for other forms. There the
/// layers are described in an object of their own.
std::string speculators_algorithm(const JsonFields& fields) {
  const json* about = fields.object("speculators_config");
  std::string stated =
      about == nullptr ? "" : JsonFields(*about, "speculators_config of config.json").text_or("algorithm", "");
  stated = fields.text_or("speculators_model_type", stated);
  const bool is_form = fields.has("speculators_version") || fields.has("transformer_layer_config") || about != nullptr;
  return stated.empty() && is_form ? "none that is named" : stated;
}

/// The same drafter in DFlash's own form.
json from_speculators(const json& root, const std::string& algorithm) {
  const JsonFields fields(root, "config.json");
  if (algorithm != "dflash") {
    throw bad_input("This is a drafter in the form of vLLM's speculators, of the algorithm '" +
                    printable(algorithm, 80) + "', which is not supported; dflash is.");
  }
  const std::string projector = fields.text_or("projector_type", "dflash");
  if (projector != "dflash" || fields.boolean_or("shift_label", false)) {
    throw bad_input("This is a drafter in the form of vLLM's speculators whose field " +
                    (projector != "dflash" ? "'projector_type' is '" + printable(projector, 80) + "'"
                                           : std::string("'shift_label' is true")) +
                    ", which is not supported; plain DFlash is.");
  }
  const json* layer = fields.object("transformer_layer_config");
  if (layer == nullptr) {
    throw bad_input("config.json has the form of vLLM's speculators, but lacks the object 'transformer_layer_config'.");
  }
  const JsonFields layers(*layer, "transformer_layer_config of config.json");
  const std::string kind = layers.text_or("model_type", "qwen3");
  if (kind != "qwen3" && kind != "llama") {
    throw bad_input("The field 'model_type' of " + layers.what() + " is '" + printable(kind, 80) +
                    "'; qwen3 and llama are supported.");
  }
  json flat = *layer;
  // What is not stated is as in Qwen3's class, which all layers are made of; but of the rotation nothing is guessed.
  if (!layers.has("head_dim") && kind == "qwen3") flat["head_dim"] = 128u;
  if (!layers.has("rms_norm_eps")) flat["rms_norm_eps"] = 1e-6;
  if (!layers.has("max_position_embeddings")) flat["max_position_embeddings"] = 32768u;
  if (!layers.has("layer_types") && layers.boolean_or("use_sliding_window", false)) {
    const uint32_t first = layers.u32_or("max_window_layers", 28), count = layers.u32("num_hidden_layers");
    check_layer_count(count);
    json types = json::array();
    for (uint32_t n = 0; n < count; ++n) types.push_back(n < first ? "full_attention" : "sliding_attention");
    flat["layer_types"] = std::move(types);
  }
  for (const auto& [field, value] : root.items()) {
    if (field != "transformer_layer_config" && field != "speculators_config" && !layers.has(field.c_str()))
      flat[field] = value;
  }
  // Counted as inputs of layers: one more than DFlash's, which are outputs.
  fields.list("aux_hidden_state_layer_ids");
  json taps = json::array();
  for (const uint32_t id : fields.ids("aux_hidden_state_layer_ids")) {
    if (id == 0) {
      throw bad_input(
          "The field 'aux_hidden_state_layer_ids' of config.json names 0, the embedding; 1, the first layer's output, "
          "and "
          "above are supported.");
    }
    taps.push_back(id - 1);
  }
  flat["target_layer_ids"] = std::move(taps);
  return flat;
}

/// The top level of config.json and its object dflash_config: fields have moved between them.
class DrafterFields {
 public:
  explicit DrafterFields(const json& root)
      : top_(root, "config.json"), inner_(inner_of(top_), "dflash_config of config.json") {}

  const JsonFields& top() const { return top_; }
  /// Where a field stands; the inner object where it stands nowhere, for the message. Throws where both have it and
  /// differ.
  const JsonFields& holding(const char* field) const {
    const json* outer = top_.find(field);
    const json* inner = inner_.find(field);
    if (outer != nullptr && inner != nullptr && *outer != *inner) {
      throw bad_input("The field '" + std::string(field) + "' of config.json is " + picture(*outer) +
                      " at the top level, but " + picture(*inner) + " in dflash_config; it must be the same.");
    }
    return outer != nullptr && inner == nullptr ? top_ : inner_;
  }
  bool has(const char* field) const { return top_.has(field) || inner_.has(field); }
  float number_or(const char* field, double fallback) const {
    return static_cast<float>(holding(field).number_or(field, fallback));
  }

 private:
  static const json& inner_of(const JsonFields& top) {
    static const json none = json::object();
    const json* inner = top.object("dflash_config");
    return inner == nullptr ? none : *inner;
  }
  static std::string picture(const json& value) {
    return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 64);
  }

  JsonFields top_;
  JsonFields inner_;
};

/// Fields of relatives whose arithmetic is not there in the engine.
void refuse_relatives(const DrafterFields& fields) {
  static constexpr auto relatives = std::to_array<std::pair<const char*, const char*>>({
      {"conv_kernel_size", "a DFlash2 drafter (with local convolutions)"},
      {"selector_rank", "a DFlash2 drafter (with a candidate selector)"},
      {"markov_rank", "a DSpark drafter (with a Markov head)"},
      {"num_experts", "a drafter with experts"},
  });
  for (const auto& [name, what] : relatives) {
    if (!fields.has(name) || fields.holding(name).u32(name) == 0) continue;
    throw bad_input("This is " + std::string(what) + ", as the field '" + name +
                    "' of config.json says, which is not supported; DFlash drafters are.");
  }
  if (fields.holding("sample_from_anchor").boolean_or("sample_from_anchor", false)) {
    throw bad_input(
        "The field 'sample_from_anchor' of config.json is true, as in DSpark drafters, which are not supported; DFlash "
        "drafters are.");
  }
}

void check_target_hidden(const DrafterFields& fields, uint32_t hidden) {
  const JsonFields& place = fields.holding("target_hidden_size");
  const uint32_t stated = place.u32_or("target_hidden_size", hidden);
  if (stated == hidden) return;
  throw bad_input("The field 'target_hidden_size' of " + place.what() + " is " + std::to_string(stated) +
                  "; only the drafter's own hidden size, " + std::to_string(hidden) + ", is supported.");
}

/// A wrong theta would only show as bad drafts: no default.
void require_theta(const JsonFields& fields) {
  if (fields.has("rope_theta")) return;
  const json* rope = fields.object("rope_parameters");
  if (rope == nullptr) rope = fields.object("rope_scaling");
  if (rope != nullptr && JsonFields(*rope, "config.json's rope scaling").has("rope_theta")) return;
  throw bad_input("config.json lacks the field 'rope_theta', at the top level and in 'rope_parameters'.");
}

std::optional<bool> read_is_causal(const DrafterFields& fields) {
  if (!fields.has("is_causal")) return std::nullopt;
  return fields.holding("is_causal").boolean_or("is_causal", false);
}

/// By layer: whether 'layer_types' calls it sliding; none where there is no such list.
std::vector<bool> read_sliding_layers(const JsonFields& top, uint32_t layers) {
  std::vector<bool> result(layers);
  if (!top.has("layer_types")) return result;
  const json& types = top.list("layer_types");
  if (types.size() != layers) {
    throw bad_input("The field 'layer_types' of config.json has " + std::to_string(types.size()) + " elements; " +
                    std::to_string(layers) + " are expected, one a layer.");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string type = types[i].is_string() ? types[i].get<std::string>() : types[i].dump().substr(0, 64);
    result[i] = type == "sliding_attention";
    if (result[i] || type == "full_attention") continue;
    throw bad_input("Element " + std::to_string(i) + " of the field 'layer_types' of config.json is '" +
                    printable(type) + "'; full_attention and sliding_attention are supported.");
  }
  return result;
}

uint32_t read_window(const DrafterFields& fields) {
  const char* const field = fields.has("swa_window_size") ? "swa_window_size" : "sliding_window";
  const JsonFields& place = std::string_view(field) == "sliding_window" ? fields.top() : fields.holding(field);
  const uint32_t window = place.u32(field);
  if (window == 0) {
    throw bad_input("The field '" + std::string(field) + "' of " + place.what() + " is 0; at least 1 is expected.");
  }
  return window;
}

/// With 'use_swa', as NVIDIA's tools export drafters, all layers have the window; those that are not called sliding see
/// the block in both directions all the same.
std::vector<DrafterAttention> read_attention(const DrafterFields& fields, uint32_t layers) {
  const std::vector<bool> sliding = read_sliding_layers(fields.top(), layers);
  const bool all = fields.holding("use_swa").boolean_or("use_swa", false);
  std::vector<DrafterAttention> result(sliding.size());
  for (size_t i = 0; i < result.size(); ++i) {
    if (!sliding[i] && !all) continue;
    result[i] = drafter_attention(read_window(fields));
    result[i].causal = sliding[i];
  }
  if (const auto causal = read_is_causal(fields)) {
    for (DrafterAttention& layer : result) layer.causal = *causal;
  }
  return result;
}

std::vector<uint32_t> read_aux_layers(const DrafterFields& fields) {
  const JsonFields& place = fields.holding("target_layer_ids");
  place.list("target_layer_ids");  // required, and no single number
  return place.ids("target_layer_ids");
}

std::vector<uint32_t> read_draft_token_ids(const DrafterFields& fields, uint32_t vocab) {
  constexpr const char* field = "draft_token_ids";
  if (!fields.has(field)) return {};
  const JsonFields& place = fields.holding(field);
  place.list(field);  // no single number
  const std::vector<uint32_t> found = place.ids(field);
  return checked_draft_token_ids("field '" + std::string(field) + "' of " + place.what(),
                                 std::vector<int64_t>(found.begin(), found.end()), vocab);
}

}  // namespace

bool is_drafter_config(std::string_view config_json) {
  const json root = parse_json(config_json, "config.json");
  const JsonFields fields(root, "config.json");
  return !speculators_algorithm(fields).empty() || is_drafter_class(class_name(fields));
}

DrafterConfig read_hf_drafter_config(std::string_view config_json) {
  const json file = parse_json(config_json, "config.json");
  const std::string algorithm = speculators_algorithm(JsonFields(file, "config.json"));
  if (algorithm.empty()) require_class(JsonFields(file, "config.json"));
  const json root = algorithm.empty() ? file : from_speculators(file, algorithm);
  const DrafterFields fields(root);
  refuse_relatives(fields);
  DrafterConfig config;
  config.dialect = algorithm.empty() ? "Hugging Face" : "speculators (vLLM)";
  ModelConfig& transformer = config.transformer;
  transformer.architecture = "dflash";
  require_theta(fields.top());
  read_hf_transformer(fields.top(), transformer);
  check_target_hidden(fields, transformer.hidden);
  config.attention = read_attention(fields, transformer.layers);
  if (!algorithm.empty()) {
    // Files from before the switch were trained with both directions in all layers; vLLM reads them so.
    const bool both_ways = fields.top().boolean_or("sliding_window_non_causal", true);
    for (DrafterAttention& each : config.attention) each.causal = each.window != 0 && !both_ways;
  }
  config.block_size = fields.holding("block_size").u32("block_size");
  config.aux_layers = read_aux_layers(fields);
  config.mask_token = fields.holding("mask_token_id").u32("mask_token_id");
  config.target_layers = fields.holding("num_target_layers").u32_or("num_target_layers", 0);
  config.vocab = fields.top().u32_or("vocab_size", 0);
  config.draft_token_ids = read_draft_token_ids(fields, config.vocab);
  config.draft_vocab_size = fields.holding("draft_vocab_size").u32_or("draft_vocab_size", 0);
  config.input_embedding_scale = fields.number_or("input_embedding_scale", 1);
  config.output_multiplier = fields.number_or("output_multiplier", 1);
  config.final_logit_softcapping = fields.number_or("final_logit_softcapping", 0);
  return config;
}

std::string drafter_name_from_hugging_face(std::string_view stored) {
  constexpr std::string_view prefix = "model.";
  const std::string plain = without_wrappers(stored);
  const std::string_view name = plain;
  const std::string_view bare = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  if (bare == "fc.weight") return "fc";
  if (bare == "hidden_norm.weight") return "hidden_norm";
  if (bare == "lm_head.weight") return "output";
  const std::string full = std::string(prefix) + std::string(bare);
  const std::string result = canonical_name_from_hugging_face(full);
  return result == full ? std::string(name) : result;
}

}  // namespace canopy
