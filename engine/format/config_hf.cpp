#include "engine/format/config_hf.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/gemma4.h"
#include "engine/format/hybrids.h"
#include "engine/format/json_text.h"
#include "engine/format/latent_attention.h"
#include "engine/format/model_families.h"
#include "engine/format/model_paths.h"
#include "engine/format/routed_experts.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t max_tokenizer_bytes = 128ull << 20;
constexpr uint64_t max_tokenizer_config_bytes = 16ull << 20;
constexpr uint64_t max_template_bytes = 4ull << 20;

const Architecture& read_architecture(const JsonFields& fields) {
  const json* classes = fields.find("architectures");
  if (classes == nullptr) return architecture_by_name(fields.text_or("model_type", ""));
  if (!classes->is_array() || classes->size() != 1 || !classes->front().is_string()) {
    throw bad_input("The field 'architectures' of config.json must be a list of one class name.");
  }
  return architecture_by_class(classes->front().get_ref<const std::string&>());
}

/// Throws for settings that would change the arithmetic in a way that the engine does not have.
void refuse_unsupported(const JsonFields& fields, bool may_have_attention_bias) {
  for (const char* flag : {"attention_bias", "mlp_bias"}) {
    if (may_have_attention_bias && std::string_view(flag) == "attention_bias") continue;
    if (fields.boolean_or(flag, false)) {
      throw bad_input("The field '" + std::string(flag) + "' of config.json is true; biases are not supported.");
    }
  }
  const std::string activation = fields.text_or("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    throw bad_input("The field 'hidden_act' of config.json is '" + printable(activation) +
                    "'; only silu is supported.");
  }
}

/// How much of a head is turned, stated in this object of config.json.
void read_turned_part(const JsonFields& fields, bool turns_part, ModelConfig& config) {
  const double part = fields.number_or("partial_rotary_factor", 1);
  if (part == 1) return;
  if (!turns_part || !(part > 0 && part < 1)) {
    throw bad_input("The field 'partial_rotary_factor' of " + fields.what() + " is " + json(part).dump() + "; " +
                    (turns_part ? "numbers above 0, up to 1, are" : "only 1 is") + " supported.");
  }
  config.rotary_dim = static_cast<uint32_t>(config.head_dim * part);
  if (config.rotary_dim == 0) {
    throw bad_input("The field 'partial_rotary_factor' of " + fields.what() + " is " + json(part).dump() +
                    ", less than an element of a head.");
  }
}

uint32_t read_head_dim(const JsonFields& fields, uint32_t hidden, uint32_t heads) {
  if (fields.has("head_dim")) return fields.u32("head_dim");
  if (heads == 0) return 0;  // validate_config says what is wrong
  if (hidden % heads != 0) {
    throw bad_input("The field 'hidden_size' of config.json is " + std::to_string(hidden) +
                    ", no multiple of 'num_attention_heads', " + std::to_string(heads) +
                    ", and 'head_dim' is missing.");
  }
  return hidden / heads;
}

void read_yarn_fields(const JsonFields& rope, ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  scaling.kind = RopeScaling::Kind::yarn;
  scaling.factor = rope.number("factor");
  scaling.original_context = rope.u32_or("original_max_position_embeddings", config.max_context);
  scaling.beta_fast = rope.number_or("beta_fast", scaling.beta_fast);
  scaling.beta_slow = rope.number_or("beta_slow", scaling.beta_slow);
  scaling.truncate = rope.boolean_or("truncate", true);
  const double mscale = rope.number_or("mscale", 0), all = rope.number_or("mscale_all_dim", 0);
  const auto with = [&](double multiplier) { return yarn_magnitude(scaling.factor, multiplier); };
  const double usual = mscale != 0 && all != 0 ? with(mscale) / with(all) : with(1);
  scaling.magnitude = rope.number_or("attention_factor", usual * rope.number_or("attn_factor", 1));
  if (rope.number_or("extrapolation_factor", 1) != 1) {
    throw bad_input("The field 'extrapolation_factor' of " + rope.what() + " is " +
                    rope.find("extrapolation_factor")->dump() + "; only 1 is supported.");
  }
  // Files are often those of the original context, with the scaling added by hand.
  const double whole = scaling.original_context * scaling.factor;
  if (whole > config.max_context && whole < UINT32_MAX) config.max_context = static_cast<uint32_t>(whole);
}

std::vector<float> read_divisor_list(const JsonFields& rope, const char* field) {
  std::vector<float> divisors;
  for (const json& entry : rope.list(field)) {
    if (!entry.is_number() || !std::isfinite(entry.get<double>())) {
      throw bad_input("The field '" + std::string(field) + "' of " + rope.what() + " holds " +
                      printable(entry.dump(), 40) + "; numbers are expected.");
    }
    divisors.push_back(entry.get<float>());
  }
  return divisors;
}

/// Newer files say 'rope_type', older ones 'type'.
std::string type_of(const JsonFields& rope) {
  return rope.text_or("rope_type", rope.text_or("type", "default"));
}

/// The rotation grows with the text once that is longer than the context that the model was trained on: up to there it
/// is the usual one, and the context ends there.
void read_dynamic(const JsonFields& rope, ModelConfig& config) {
  if (rope.has("alpha")) {  // another kind of the same name, which changes the rotation of all texts
    throw bad_input("config.json's rope scaling is of type 'dynamic' with the field 'alpha', which is not supported.");
  }
  config.max_context =
      std::min(config.max_context, rope.u32_or("original_max_position_embeddings", config.max_context));
  note_dynamic_rope(config);
}

/// Microsoft's Phi-3 and Phi-4 have the original context beside the scaling.
void read_longrope(const JsonFields& fields, const JsonFields& rope, ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  scaling.kind = RopeScaling::Kind::longrope;
  scaling.divisors = read_divisor_list(rope, "short_factor");
  scaling.long_divisors = read_divisor_list(rope, "long_factor");
  const uint32_t inside = rope.u32_or("original_max_position_embeddings", config.max_context);
  scaling.original_context = fields.u32_or("original_max_position_embeddings", inside);
  const double ratio = static_cast<double>(config.max_context) / std::max(scaling.original_context, 1u);
  const double longer = fields.has("original_max_position_embeddings") ? ratio : rope.number_or("factor", ratio);
  double usual = 1;
  if (longer > 1) {
    // Phi-3's first files call one of their kinds yarn: with lists, and yarn's magnitude.
    const bool is_yarn = type_of(rope) == "yarn";
    usual = is_yarn ? yarn_magnitude(longer) : std::sqrt(1 + std::log(longer) / std::log(scaling.original_context));
  }
  scaling.magnitude = rope.number_or("attention_factor", usual);
}

/// Older files keep rope_theta beside a `rope_scaling` object, newer ones put both into `rope_parameters`.
void read_rope(const JsonFields& fields, bool turns_part, ModelConfig& config) {
  read_turned_part(fields, turns_part, config);
  config.rope_layout = RopeLayout::half;
  config.rope_theta = fields.number_or("rope_theta", config.rope_theta);
  const json* object = fields.object("rope_parameters");
  if (object == nullptr) object = fields.object("rope_scaling");
  if (object == nullptr) return;
  const JsonFields rope(*object, "config.json's rope scaling");
  config.rope_theta = rope.number_or("rope_theta", config.rope_theta);
  read_turned_part(rope, turns_part, config);
  const std::string kind = type_of(rope);
  RopeScaling& scaling = config.rope_scaling;
  scaling.query_growth = rope.number_or("llama_4_scaling_beta", 0);  // which has its name from Llama 4
  if (scaling.query_growth != 0) scaling.original_context = rope.u32("original_max_position_embeddings");
  if (kind == "default" || kind == "mrope") return;  // positions of pictures besides, which texts do not have
  if (kind == "linear") {
    scaling.kind = RopeScaling::Kind::linear;
    scaling.factor = rope.number("factor");
  } else if (kind == "llama3") {
    scaling.kind = RopeScaling::Kind::llama3;
    scaling.factor = rope.number("factor");
    scaling.low_freq_factor = rope.number("low_freq_factor");
    scaling.high_freq_factor = rope.number("high_freq_factor");
    scaling.original_context = rope.u32("original_max_position_embeddings");
  } else if (kind == "dynamic") {
    read_dynamic(rope, config);
  } else if (kind == "yarn" && !rope.has("short_factor")) {
    read_yarn_fields(rope, config);
  } else if (kind == "longrope" || kind == "su" || kind == "yarn") {  // su: longrope in Phi-3's first files
    read_longrope(fields, rope, config);
  } else {
    throw bad_input("config.json's rope scaling is of type '" + printable(kind) +
                    "'; supported are default, linear, dynamic, llama3, yarn and longrope.");
  }
}

/// SmolLM3's list of layers, in which a 1 stands, against its name, for one that turns its heads; or how many there are
/// to one that does not.
std::vector<bool> read_rotating_layers(const JsonFields& fields, const ModelConfig& config,
                                       const Architecture& architecture) {
  if (!fields.has("no_rope_layers"))
    return layers_that_rotate(config.layers, fields.u32_or("no_rope_layer_interval", architecture.unrotated_step));
  const json& list = fields.list("no_rope_layers");
  std::vector<bool> rotates;
  for (const json& entry : list) {
    if (!(entry == 0 || entry == 1)) {
      throw bad_input("The field 'no_rope_layers' of config.json holds " + printable(entry.dump(), 40) +
                      "; 0 and 1 are allowed.");
    }
    rotates.push_back(entry == 1);
  }
  if (rotates.size() != config.layers) {
    throw bad_input("The field 'no_rope_layers' of config.json has " + std::to_string(rotates.size()) +
                    " entries; the model has " + std::to_string(config.layers) + " layers.");
  }
  return rotates;
}

/// Which layers have experts: each `decoder_sparse_step`-th, but for those in `mlp_only_layers`.
std::vector<bool> read_layers_with_experts(const JsonFields& fields, uint32_t layers) {
  const uint32_t step = fields.u32_or("decoder_sparse_step", 1);
  std::vector<bool> has_experts;
  for (uint32_t n = 0; n < layers; ++n) has_experts.push_back(step != 0 && (n + 1) % step == 0);
  if (!fields.has("mlp_only_layers")) return has_experts;
  for (const json& entry : fields.list("mlp_only_layers")) {
    if (!entry.is_number_unsigned() || entry.get<uint64_t>() >= layers) {
      throw bad_input("The field 'mlp_only_layers' of config.json holds " + printable(entry.dump(), 40) +
                      "; numbers of layers, 0 to " + std::to_string(layers - 1) + ", are allowed.");
    }
    has_experts[entry.get<uint64_t>()] = false;
  }
  return has_experts;
}

/// Hybrids and Qwen3-VL have no switch for the shares in some files, and hybrids a shared expert in all.
void read_experts(const JsonFields& fields, const Architecture& architecture, ModelConfig& config) {
  config.experts = fields.u32(fields.has("num_local_experts") ? "num_local_experts" : "num_experts");
  config.experts_used = fields.u32("num_experts_per_tok");
  config.expert_ffn = fields.u32("moe_intermediate_size");
  const bool is_hybrid = architecture.is_hybrid;
  config.shares_among_chosen = fields.boolean_or("norm_topk_prob", is_hybrid || architecture.has_transposed_experts);
  if (is_hybrid) config.shared_ffn = fields.u32("shared_expert_intermediate_size");
  config.has_experts = read_layers_with_experts(fields, config.layers);
  if (config.ffn == 0 && config.layers_with_experts() == config.layers) config.ffn = config.expert_ffn;  // of no layer
}

/// By layer: whether its attention has a window.
std::vector<bool> read_sliding_layers(const JsonFields& fields, const ModelConfig& config, Windows where) {
  std::vector<bool> slides;
  if (!fields.has("layer_types")) {
    const uint32_t first = where == Windows::in_last_layers ? fields.u32_or("max_window_layers", 28) : 0;
    for (uint32_t n = 0; n < config.layers; ++n) {
      slides.push_back(where == Windows::in_unrotated_layers ? !config.rotates.empty() && !config.rotates[n]
                       : where == Windows::in_even_layers    ? n % 2 == 0
                                                             : n >= first);
    }
    return slides;
  }
  return fields.of_layers("layer_types", config.layers, "sliding_attention", "full_attention");
}

/// The windows of attention, by layer; none where a text cannot be longer than them.
std::vector<uint32_t> read_windows(const JsonFields& fields, const ModelConfig& config, Windows where) {
  const bool needs_no_switch = where == Windows::in_all_layers || where == Windows::in_even_layers;
  if (!fields.boolean_or("use_sliding_window", needs_no_switch)) return {};
  if (needs_no_switch && !fields.has("sliding_window")) return {};
  const uint32_t window = fields.u32("sliding_window");
  if (window == 0) throw bad_input("The field 'sliding_window' of config.json is 0; it must be at least 1.");
  if (window >= config.max_context) return {};
  std::vector<uint32_t> windows;
  for (const bool slides : read_sliding_layers(fields, config, where)) windows.push_back(slides ? window : 0);
  return windows;
}

/// The ids of a field that name a token of the vocabulary, one or a list; others, of which -1 is common, are ignored.
std::vector<uint32_t> special_ids(const JsonFields& fields, const char* field, uint32_t vocab) {
  const json* value = fields.find(field);
  if (value == nullptr) return {};
  std::vector<uint32_t> ids;
  for (const json& id : value->is_array() ? *value : json::array({*value})) {
    if (id.is_null()) continue;
    if (!id.is_number_integer()) {
      throw bad_input("The field '" + std::string(field) + "' of " + fields.what() + " is " +
                      printable(value->dump(), 80) + "; the id of a token, or a list of ids, is expected.");
    }
    if (id.is_number_unsigned() && id.get<uint64_t>() < vocab) {
      ids.push_back(id.get<uint32_t>());
      continue;
    }
    log_warning("The field '" + std::string(field) + "' of " + fields.what() + " holds " + id.dump() +
                ", which is none of the " + std::to_string(vocab) + " tokens of the vocabulary; it is ignored.");
  }
  return ids;
}

void read_special_tokens(const JsonFields& fields, ModelConfig& config) {
  const auto bos = special_ids(fields, "bos_token_id", config.vocab);
  if (!bos.empty() && !config.bos) config.bos = bos.front();
  for (const uint32_t id : special_ids(fields, "eos_token_id", config.vocab)) {
    if (std::ranges::find(config.eos, id) == config.eos.end()) config.eos.push_back(id);
  }
}

/// Adds the templates of a field: a string, or several with names, as a list or as an object. "default" is for chat,
/// "tool_use" for chat with tools. What is there already stays.
void add_templates(const json& value, const std::string& what, TokenizerSource& source) {
  const auto add = [&](const json& name, const json& text) {
    if (!name.is_string() || !text.is_string()) {
      throw bad_input("The chat templates of " + what + " have an entry " + printable(text.dump(), 80) +
                      " that is no name with a template; both must be strings.");
    }
    if (name == "default" && source.chat_template.empty()) source.chat_template = text.get<std::string>();
    if (name == "tool_use" && source.tool_template.empty()) source.tool_template = text.get<std::string>();
  };
  if (value.is_null()) return;
  if (value.is_string()) {
    add("default", value);
  } else if (value.is_array()) {
    for (const json& entry : value) {
      const JsonFields fields(entry, "an entry of the chat templates of " + what);
      add(fields.at("name"), fields.at("template"));
    }
  } else if (value.is_object()) {
    for (const auto& [name, text] : value.items()) add(name, text);
  } else {
    throw bad_input("The chat template of " + what + " is " + printable(value.dump(), 80) +
                    "; a string, or several with names, is expected.");
  }
}

/// chat_template.json, in the form of processors: an object with the field, or the template alone.
void add_template_json(const fs::path& folder, TokenizerSource& source) {
  const std::string text = read_optional_file(folder / "chat_template.json", max_template_bytes);
  if (text.empty()) return;
  const json root = parse_json(text, "chat_template.json");
  if (root.is_string()) return add_templates(root, "chat_template.json", source);
  const JsonFields fields(root, "chat_template.json");
  add_templates(fields.at("chat_template"), "chat_template.json", source);
}

/// chat_template.jinja, and those that stand beside it under names of their own.
void add_template_files(const fs::path& folder, TokenizerSource& source) {
  const auto add = [&](const fs::path& path, std::string& to) {
    if (to.empty()) to = read_optional_file(path, max_template_bytes);
  };
  add(folder / "chat_template.jinja", source.chat_template);
  add(folder / "additional_chat_templates" / "default.jinja", source.chat_template);
  add(folder / "additional_chat_templates" / "tool_use.jinja", source.tool_template);
}

}  // namespace

void read_hf_transformer(const JsonFields& fields, ModelConfig& config, bool turns_part, bool has_experts) {
  refuse_unsupported(fields, config.has_qkv_bias);
  config.layers = fields.u32("num_hidden_layers");
  with_context("config.json", [&] { check_layer_count(config.layers); });
  config.hidden = fields.u32("hidden_size");
  config.heads = fields.u32("num_attention_heads");
  config.kv_heads = fields.u32_or("num_key_value_heads", config.heads);
  config.head_dim = read_head_dim(fields, config.hidden, config.heads);
  config.ffn = has_experts ? fields.u32_or("intermediate_size", 0) : fields.u32("intermediate_size");
  config.max_context = fields.u32("max_position_embeddings");
  config.rms_eps = static_cast<float>(fields.number("rms_norm_eps"));
  read_rope(fields, turns_part, config);
}

ModelConfig read_hf_config(std::string_view config_json, std::string_view generation_config_json) {
  const json root = parse_config_json(config_json, "config.json");
  const JsonFields whole(root, "config.json");
  const Architecture& architecture = read_architecture(whole);
  const bool sees = architecture.hugging_face.ends_with("ForConditionalGeneration");  // pictures too
  const json* text_part = sees ? whole.object("text_config") : nullptr;
  const json& given = text_part != nullptr ? *text_part : root;
  const json object = architecture.is_gemma4     ? complete_gemma4(given)
                      : architecture.is_gemma    ? complete_gemma(given, architecture.name)
                      : architecture.is_latent   ? complete_latent(given)
                      : architecture.is_nemotron ? complete_nemotron(given)
                      : architecture.is_lfm2     ? complete_lfm2(given)
                                                 : given;
  const JsonFields fields(object, "config.json");
  ModelConfig config;
  config.architecture = architecture.name;
  config.has_qkv_bias = architecture.is_glm4 ? fields.boolean_or("attention_bias", false) : architecture.has_qkv_bias;
  config.has_output_bias = architecture.has_output_bias;
  config.has_qk_norm = architecture.is_glm4 ? fields.boolean_or("use_qk_norm", false) : architecture.has_qk_norm;
  config.rope_theta = architecture.rope_theta;
  read_hf_transformer(fields, config, true, architecture.has_experts);
  if (architecture.is_hybrid) read_hf_hybrid(fields, config);
  if (architecture.is_lfm2) read_hf_lfm2(fields, config);
  if (architecture.is_gemma4) {
    read_hf_gemma4(fields, read_sliding_layers(fields, config, architecture.window), config);
  } else if (architecture.is_gemma) {
    read_hf_gemma(fields, config);
  }
  if (architecture.is_gpt_oss) {
    read_hf_gpt_oss(fields, config);
  } else if (architecture.is_granite) {
    read_hf_granite(fields, config);
  } else if (architecture.is_nemotron) {
    read_hf_nemotron(fields, config);
  } else if (architecture.has_dense_start) {
    if (architecture.is_latent) read_hf_latent(fields, config);
    read_hf_routed_experts(fields, architecture.router_has_sigmoid, config);
  } else if (architecture.has_experts) {
    read_experts(fields, architecture, config);
  }
  config.vocab = fields.u32("vocab_size");
  config.tied_head =
      fields.boolean_or("tie_word_embeddings", whole.boolean_or("tie_word_embeddings", architecture.ties_head));
  if (!generation_config_json.empty()) {
    const json generation = parse_json(generation_config_json, "generation_config.json");
    read_special_tokens(JsonFields(generation, "generation_config.json"), config);
  }
  read_special_tokens(fields, config);
  if (sees) read_special_tokens(whole, config);
  with_context("config.json", [&] { validate_config(config); });
  if (architecture.unrotated_step != 0) config.rotates = read_rotating_layers(fields, config, architecture);
  config.windows = read_windows(fields, config, architecture.window);
  if (config.local_rope_theta != 0) config.turns_locally = read_sliding_layers(fields, config, architecture.window);
  return config;
}

std::string read_optional_file(const fs::path& path, uint64_t max_bytes) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  std::string text = read_small_file(path, max_bytes);
  if (text.empty()) throw bad_input("The file " + shown(path) + " is empty.");  // not the same as absent
  with_context("The file " + shown(path), [&] { refuse_lfs_pointer(std::as_bytes(std::span(text))); });
  return text;
}

TokenizerSource read_hf_tokenizer(const fs::path& folder) {
  TokenizerSource source;
  source.tokenizer_json = read_optional_file(folder / "tokenizer.json", max_tokenizer_bytes);
  source.tokenizer_config_json = read_optional_file(folder / "tokenizer_config.json", max_tokenizer_config_bytes);
  if (source.tokenizer_json.empty()) {
    source.tokenizer_model = read_optional_file(folder / "tokenizer.model", max_tokenizer_bytes);
  }
  const bool has_tokenizer = !source.tokenizer_json.empty() || !source.tokenizer_model.empty();
  if (has_tokenizer) source.kind = TokenizerSource::Kind::hugging_face;
  // As transformers has it: a processor takes chat_template.json before chat_template.jinja, and either goes before
  // what tokenizer_config.json says.
  std::error_code ignored;
  const bool has_processor =
      fs::exists(folder / "processor_config.json", ignored) || fs::exists(folder / "preprocessor_config.json", ignored);
  if (has_processor) add_template_json(folder, source);
  add_template_files(folder, source);
  if (!has_processor) add_template_json(folder, source);
  if (!source.tokenizer_config_json.empty()) {
    const json root = parse_json(source.tokenizer_config_json, "tokenizer_config.json");
    const JsonFields fields(root, "tokenizer_config.json");
    const bool has_none = source.chat_template.empty() && source.tool_template.empty();
    const json* value = fields.find("chat_template");
    if (value != nullptr && has_none) add_templates(*value, "tokenizer_config.json", source);
  }
  return source;
}

}  // namespace canopy
