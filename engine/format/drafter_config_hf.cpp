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
  return is_drafter_class(class_name(JsonFields(root, "config.json")));
}

DrafterConfig read_hf_drafter_config(std::string_view config_json) {
  const json root = parse_json(config_json, "config.json");
  require_class(JsonFields(root, "config.json"));
  const DrafterFields fields(root);
  refuse_relatives(fields);
  DrafterConfig config;
  config.dialect = "Hugging Face";
  ModelConfig& transformer = config.transformer;
  transformer.architecture = "dflash";
  require_theta(fields.top());
  read_hf_transformer(fields.top(), transformer);
  check_target_hidden(fields, transformer.hidden);
  config.attention = read_attention(fields, transformer.layers);
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

std::string drafter_name_from_hugging_face(std::string_view name) {
  constexpr std::string_view prefix = "model.";
  const std::string_view bare = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  if (bare == "fc.weight") return "fc";
  if (bare == "hidden_norm.weight") return "hidden_norm";
  if (bare == "lm_head.weight") return "output";
  const std::string full = std::string(prefix) + std::string(bare);
  const std::string result = canonical_name_from_hugging_face(full);
  return result == full ? std::string(name) : result;
}

}  // namespace canopy
