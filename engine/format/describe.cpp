#include "engine/format/describe.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/draft_file.h"
#include "engine/format/gguf.h"
#include "engine/format/model_file.h"
#include "engine/format/model_paths.h"
#include "engine/format/safetensors.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t shown_elements = 8;    // of an array
constexpr size_t shown_text_bytes = 400;  // of one metadata value

/// A float as JSON, which knows neither NaN nor infinity.
json number_json(double value) {
  return std::isfinite(value) ? json(value) : json(std::to_string(value));
}

json element_json(Reader& reader, GgufType type) {
  const std::string_view field = "an element";
  switch (type) {
    case GgufType::u8:
    case GgufType::boolean: return reader.read<uint8_t>(field);
    case GgufType::i8: return reader.read<int8_t>(field);
    case GgufType::u16: return reader.read<uint16_t>(field);
    case GgufType::i16: return reader.read<int16_t>(field);
    case GgufType::u32: return reader.read<uint32_t>(field);
    case GgufType::i32: return reader.read<int32_t>(field);
    case GgufType::f32: return number_json(reader.read<float>(field));
    case GgufType::u64: return reader.read<uint64_t>(field);
    case GgufType::i64: return reader.read<int64_t>(field);
    case GgufType::f64: return number_json(reader.read<double>(field));
    case GgufType::string: return printable(reader.text(reader.read<uint64_t>(field), field));
    case GgufType::array: break;
  }
  return "(array)";
}

json array_json(const GgufValue& value) {
  json first = json::array();
  Reader reader(value.elements);
  for (uint64_t i = 0; i < std::min(value.count, shown_elements) && value.element_type != GgufType::array; ++i) {
    first.push_back(element_json(reader, value.element_type));
  }
  return {{"array_of", to_string(value.element_type)}, {"count", value.count}, {"first", first}};
}

json value_json(const GgufValue& value) {
  switch (value.type) {
    case GgufType::u8:
    case GgufType::u16:
    case GgufType::u32:
    case GgufType::u64: return value.unsigned_value;
    case GgufType::i8:
    case GgufType::i16:
    case GgufType::i32:
    case GgufType::i64: return value.signed_value;
    case GgufType::f32:
    case GgufType::f64: return number_json(value.float_value);
    case GgufType::boolean: return value.unsigned_value != 0;
    case GgufType::string: return printable(value.text, shown_text_bytes);
    case GgufType::array: return array_json(value);
  }
  return nullptr;
}

json scaling_json(const RopeScaling& scaling) {
  switch (scaling.kind) {
    case RopeScaling::Kind::none: return "none";
    case RopeScaling::Kind::linear: return {{"kind", "linear"}, {"factor", scaling.factor}};
    case RopeScaling::Kind::llama3:
      return {{"kind", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_context", scaling.original_context}};
    case RopeScaling::Kind::yarn:
      return {{"kind", "yarn"},
              {"factor", scaling.factor},
              {"original_context", scaling.original_context},
              {"magnitude", scaling.magnitude},
              {"beta_fast", scaling.beta_fast},
              {"beta_slow", scaling.beta_slow},
              {"truncate", scaling.truncate}};
    case RopeScaling::Kind::longrope:
      return {{"kind", "longrope"},
              {"original_context", scaling.original_context},
              {"magnitude", scaling.magnitude},
              {"count", scaling.divisors.size()}};
    case RopeScaling::Kind::proportional:
      return {{"kind", "proportional"}, {"factor", scaling.factor}, {"turned_pairs", scaling.turned_pairs}};
    case RopeScaling::Kind::factors: return {{"kind", "factors"}, {"count", scaling.divisors.size()}};
  }
  return nullptr;
}

json config_json(const ModelConfig& c) {
  json result = {{"architecture", c.architecture},
                 {"name", c.name},
                 {"layers", c.layers},
                 {"hidden", c.hidden},
                 {"heads", c.layer_heads.empty() ? json(c.heads) : json(c.layer_heads)},
                 {"kv_heads", c.layer_kv_heads.empty() ? json(c.kv_heads) : json(c.layer_kv_heads)},
                 {"head_dim", c.head_dim},
                 {"local_head_dim", c.local_head_dim != 0 ? json(c.local_head_dim) : json()},
                 {"ffn", c.layer_ffn.empty() ? json(c.ffn) : json(c.layer_ffn)},
                 {"vocab", c.vocab},
                 {"max_context", c.max_context},
                 {"rms_eps", number_json(c.rms_eps)},
                 {"rope_theta", number_json(c.rope_theta)},
                 {"rope_scaling", scaling_json(c.rope_scaling)},
                 {"query_growth", c.rope_scaling.query_growth != 0 ? number_json(c.rope_scaling.query_growth) : json()},
                 {"rope_layout", c.rope_layout == RopeLayout::half ? "half" : "interleaved"},
                 {"unrotated_layers", std::ranges::count(c.rotates, false)},
                 {"window", c.windows.empty() ? json() : json(*std::ranges::max_element(c.windows))},
                 {"window_layers", c.windows.size() - static_cast<size_t>(std::ranges::count(c.windows, 0u))},
                 {"local_rope_theta", c.has_local_rope() ? number_json(c.local_rope_theta) : json()},
                 {"attention_softcap", c.attention_softcap != 0 ? number_json(c.attention_softcap) : json()},
                 {"logit_softcap", c.logit_softcap != 0 ? number_json(c.logit_softcap) : json()},
                 {"qkv_bias", c.has_qkv_bias},
                 {"qk_norm", c.has_qk_norm},
                 {"tied_head", c.tied_head},
                 {"bos", c.bos ? json(*c.bos) : json()},
                 {"eos", c.eos},
                 {"quantization", c.quantization},
                 {"parameters", c.parameters}};
  if (c.has_experts.empty()) return result;
  result["experts"] = {{"count", c.experts},
                       {"used", c.experts_used},
                       {"ffn", c.expert_ffn},
                       {"shared_ffn", c.shared_ffn != 0 ? json(c.shared_ffn) : json()},
                       {"layers", c.layers_with_experts()},
                       {"shares_among_chosen", c.shares_among_chosen}};
  return result;
}

/// A drafter's own fields behind those of its layers; what it borrows from the target is left out.
json file_json(const DrafterFile& drafter) {
  const DrafterConfig& c = drafter.config();
  json result = config_json(c.transformer);
  for (const char* borrowed : {"tied_head", "bos", "eos"}) result.erase(borrowed);
  json attention = json::array();
  for (const DrafterAttention& layer : c.attention) {
    attention.push_back({{"window", layer.window != 0 ? json(layer.window) : json()}, {"causal", layer.causal}});
  }
  result["kind"] = c.kind();
  result["dialect"] = c.dialect;
  result["vocab"] = c.vocab;
  result["drafted_tokens"] = c.draft_token_ids.empty() ? c.vocab : c.draft_token_ids.size();
  result["own_head"] = c.own_head;
  result["block_size"] = c.block_size;
  result["draft_shift"] = c.draft_shift;
  result["sample_from_anchor"] = c.sample_from_anchor;
  result["markov_rank"] = c.markov.rank != 0 ? json(c.markov.rank) : json();
  result["confidence_head"] = c.markov.has_confidence;
  result["convolution"] = c.conv.taps != 0 ? json{{"taps", c.conv.taps}, {"group", c.conv.group}} : json();
  result["selector"] = c.selector.rank != 0 ? json{{"rank", c.selector.rank}, {"top_k", c.selector.top_k}} : json();
  result["mask_token"] = c.mask_token;
  result["taps"] = c.aux_layers;
  result["target_layers"] = c.target_layers;
  result["attention"] = attention;
  result["input_embedding_scale"] = number_json(c.input_embedding_scale);
  result["output_multiplier"] = number_json(c.output_multiplier);
  result["final_logit_softcapping"] = number_json(c.final_logit_softcapping);
  return result;
}

void add_tensors(json& result, std::span<const TensorView> tensors) {
  result["tensors"] = json::array();
  json& types = result["types"] = json::object();
  uint64_t elements = 0;
  uint64_t bytes = 0;
  for (const TensorView& tensor : tensors) {
    const std::string type(to_string(tensor.type));
    const std::vector<uint64_t> shape(tensor.shape.begin(), tensor.shape.begin() + tensor.rank);
    result["tensors"].push_back(
        {{"name", printable(tensor.name)}, {"type", type}, {"shape", shape}, {"bytes", tensor.bytes.size()}});
    json& total = types[type];
    if (total.is_null()) total = {{"tensors", 0u}, {"elements", uint64_t{0}}, {"bytes", uint64_t{0}}};
    total["tensors"] = total["tensors"].get<uint64_t>() + 1;
    total["elements"] = total["elements"].get<uint64_t>() + tensor.elements();
    total["bytes"] = total["bytes"].get<uint64_t>() + tensor.bytes.size();
    elements += tensor.elements();
    bytes += tensor.bytes.size();
  }
  result["totals"] = {{"tensors", tensors.size()}, {"elements", elements}, {"bytes", bytes}};
}

void describe_gguf(json& result, const fs::path& path) {
  const GgufFile file = GgufFile::open(path);
  result["format"] = "gguf";
  result["version"] = file.version();
  uint64_t bytes = 0;
  for (const MappedFile& part : file.files()) bytes += part.bytes().size();
  result["file_bytes"] = bytes;
  if (file.files().size() > 1) {
    for (const MappedFile& part : file.files()) result["files"].push_back(shown(part.path().filename()));
  }
  for (const GgufValue& value : file.metadata()) result["metadata"][printable(value.key)] = value_json(value);
  add_tensors(result, file.tensors());
}

void add_metadata(json& result, const SafetensorsFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    result["metadata"][printable(key)] = printable(value, shown_text_bytes);
  }
}

void describe_safetensors(json& result, const SafetensorsFile& file) {
  result["format"] = "safetensors";
  result["file_bytes"] = file.file().bytes().size();
  add_metadata(result, file);
  add_tensors(result, file.tensors());
}

void describe_folder(json& result, const fs::path& path) {
  const SafetensorsFolder folder = SafetensorsFolder::open(path);
  result["format"] = "safetensors";
  uint64_t bytes = 0;
  result["files"] = json::array();
  for (const SafetensorsFile& file : folder.files()) {
    result["files"].push_back(shown(file.file().path().filename()));
    bytes += file.file().bytes().size();
    add_metadata(result, file);
  }
  result["file_bytes"] = bytes;
  add_tensors(result, folder.tensors());
}

/// A model, and whether it brings a head that predicts further tokens and why that cannot be used.
json file_json(const ModelFile& model) {
  json result = config_json(model.config());
  if (!MtpFile::is_in(model)) return result;
  try {
    result["mtp_head"] = {{"parameters", MtpFile::open(model.path()).config().parameters}};
  } catch (const Error& e) {
    result["mtp_head"] = {{"problem", printable(e.what(), 2048)}};
  }
  return result;
}

/// A head alone: its layer, and the model that it is of.
json file_json(const MtpFile& head) {
  json result = config_json(head.config());
  for (const char* borrowed : {"tied_head", "bos", "eos"}) result.erase(borrowed);
  result["predicts_further_tokens_of"] = {{"layers", head.model_layers()}};
  return result;
}

json file_json(const EagleFile& head) {
  const EagleConfig& c = head.config();
  json result = config_json(c.layer);
  for (const char* borrowed : {"tied_head", "bos", "eos"}) result.erase(borrowed);
  result["dialect"] = c.dialect;
  result["drafted_tokens"] = c.drafted_tokens();
  result["target_hidden"] = c.target_hidden;
  result["taps"] = c.aux_layers;
  result["norm_before_residual"] = c.norm_before_residual;
  result["norm_before_fc"] = c.norm_before_fc;
  result["fc_norm"] = c.fc_norm;
  result["norm_output"] = c.norm_output;
  return result;
}

json file_json(const AssistantFile& assistant) {
  const AssistantConfig& c = assistant.config();
  json result = config_json(c.layers);
  for (const char* borrowed : {"tied_head", "bos", "eos"}) result.erase(borrowed);
  result["dialect"] = c.dialect;
  result["target_hidden"] = c.target_hidden;
  result["reads_keys_of_target"] = true;
  result["centroids_left_out"] = c.has_centroids;
  return result;
}

void add_config(json& result, const fs::path& path) {
  try {
    const DraftFile file = open_draft_file(path, draft_kind(path, nullptr));
    result["config"] = std::visit([](const auto& each) { return file_json(each); }, file);
  } catch (const Error& e) {
    result["config"] = nullptr;
    result["config_error"] = printable(e.what(), 2048);
  }
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text + " ";
}

std::string plain(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object() || !value.contains("array_of")) return value.dump();
  return value["count"].dump() + " of " + value["array_of"].get<std::string>() + ": " + value["first"].dump() +
         (value["count"] > value["first"].size() ? " …" : "");
}

void add_section(std::string& text, const char* title, const json& object, size_t width) {
  text += std::string("\n") + title + "\n";
  for (const auto& [key, value] : object.items()) text += "  " + padded(key, width) + plain(value) + "\n";
}

}  // namespace

json describe_json(const fs::path& path) {
  json result = {{"path", shown(path)}, {"metadata", json::object()}};
  std::error_code ignored;
  with_context(shown(path), [&] {
    const fs::path found = resolve_model_path(path);
    if (fs::is_directory(found, ignored)) {
      describe_folder(result, found);
    } else if (found.extension() == ".safetensors") {
      describe_safetensors(result, SafetensorsFile::open(found));
    } else {
      describe_gguf(result, found);
    }
  });
  add_config(result, path);
  return result;
}

std::string describe_text(const json& d) {
  std::string text = d["path"].get<std::string>() + "\n" + d["format"].get<std::string>() + ", " +
                     byte_figures(d["file_bytes"].get<uint64_t>());
  if (d.contains("files") && d["files"].size() > 1) text += " in " + std::to_string(d["files"].size()) + " files";
  text += "\n";
  if (d["config"].is_null()) {
    text += "\nCannot be run: " + d["config_error"].get<std::string>() + "\n";
  } else {
    add_section(text, "Config", d["config"], 14);
  }
  if (!d["metadata"].empty()) add_section(text, "Metadata", d["metadata"], 40);
  text += "\nTensors\n";
  for (const json& tensor : d["tensors"]) {
    text += "  " + padded(tensor["name"].get<std::string>(), 48) + padded(tensor["type"].get<std::string>(), 7) +
            padded(tensor["shape"].dump(), 16) + byte_figures(tensor["bytes"].get<uint64_t>()) + "\n";
  }
  text += "\nTotals\n";
  for (const auto& [type, total] : d["types"].items()) {
    text += "  " + padded(type, 7) + padded(total["tensors"].dump() + " tensors", 14) +
            padded(total["elements"].dump() + " elements", 24) + byte_figures(total["bytes"].get<uint64_t>()) + "\n";
  }
  const json& totals = d["totals"];
  return text + "  " + padded("all", 7) + padded(totals["tensors"].dump() + " tensors", 14) +
         padded(totals["elements"].dump() + " elements", 24) + byte_figures(totals["bytes"].get<uint64_t>()) + "\n";
}

}  // namespace canopy
