#include "engine/elsewhere/recorded_shapes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy {
namespace {

constexpr uint32_t usual_layers = 5, usual_taps = 5;  // of drafters
constexpr uint32_t most_taps = 64;

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::ranges::replace(result, ' ', '-');
  return result;
}

std::optional<predict::NamedShape> known_shape(const std::string& name) {
  try {
    return predict::model_shape(name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// "SmolLM2-135M-Instruct.Q4_1.gguf" of Q4_1 is smollm2-135m-q4_1: the longest beginning that is known.
predict::NamedShape shape_by_name(const TraceModel& model) {
  const std::string type = "-" + lower(model.quantization);
  for (std::string name : {lower(model.name), lower(model.file_name)}) {
    while (!name.empty()) {
      if (auto shape = known_shape(name + type)) return *std::move(shape);
      const size_t cut = name.find_last_of("-._");
      name.resize(cut == std::string::npos ? 0 : cut);
    }
  }
  throw bad_input(
      "Times cannot be predicted for this recording: it was made by an earlier version and does not say how large its "
      "model " +
      quoted_name(model.name) + " is; name its shape: " + predict::allowed_shapes() + ".");
}

TensorType tensor_type_named(const std::string& name, const std::string& kind) {
  for (const TensorTypeInfo& info : all_tensor_types()) {
    if (info.name == name) return info.type;
  }
  throw bad_input("The recording names the type " + quoted_name(name) + " for weights " + quoted_name(kind) +
                  ", which is not known.");
}

/// One with layers of these kinds.
std::string architecture_of(const TraceModel& model) {
  if (model.architecture == "gemma2" || model.architecture == "gemma3") return model.architecture;
  const TraceSizes& sizes = *model.sizes;
  if (sizes.recurrent_layers > 0) return sizes.expert_layers > 0 ? "qwen35moe" : "qwen35";
  return sizes.expert_layers > 0 ? "qwen3moe" : sizes.qk_norm ? "qwen3" : "llama";
}

/// Which of the layers are recurrences changes no time.
void add_recurrences(const TraceSizes& sizes, ModelConfig& config) {
  for (uint32_t n = 0; n < std::min(config.layers, 1u << 16); ++n) {
    config.recurrent.push_back(n < sizes.recurrent_layers);
  }
  config.delta_net = {.key_heads = sizes.key_heads,
                      .value_heads = sizes.value_heads,
                      .key_dim = sizes.key_dim,
                      .value_dim = sizes.value_dim,
                      .taps = sizes.conv_taps};
  config.rotary_dim = sizes.rotary_dim;
  config.has_output_gate = sizes.output_gate;
}

predict::NamedShape shape_of(const TraceModel& model, uint32_t vocabulary, const std::string& what) {
  const TraceSizes& sizes = *model.sizes;
  const bool has_recurrences =
      std::ranges::find(sizes.types, "ssm_out", [](const auto& type) { return type.first; }) != sizes.types.end();
  if (has_recurrences && sizes.recurrent_layers == 0) {  // of before they were written down
    throw bad_input(
        "Times cannot be predicted for this recording: " + what + " " + quoted_name(model.name) +
        " has recurrent layers, whose sizes it does not name; name another shape: " + predict::allowed_shapes() + ".");
  }
  predict::NamedShape shape;
  shape.name = model.name;
  shape.weights = "f16";  // of what the recording does not name
  ModelConfig& config = shape.config;
  config.architecture = architecture_of(model);
  config.has_post_norms = config.architecture.starts_with("gemma");
  config.name = model.name;
  config.layers = sizes.layers;
  config.hidden = sizes.hidden;
  config.heads = sizes.heads;
  config.kv_heads = sizes.kv_heads;
  config.head_dim = sizes.head_dim;
  config.ffn = sizes.ffn;
  config.vocab = vocabulary;
  config.experts = sizes.experts;
  config.experts_used = sizes.experts_used;
  config.expert_ffn = sizes.expert_ffn;
  // Which of the layers have experts changes no time.
  for (uint32_t n = 0; sizes.expert_layers > 0 && n < std::min(config.layers, 1u << 16); ++n) {
    config.has_experts.push_back(n < sizes.expert_layers);
  }
  config.shared_ffn = sizes.shared_ffn;
  if (sizes.recurrent_layers > 0) add_recurrences(sizes, config);
  config.max_context = 131072;
  config.rms_eps = 1e-6f;
  config.rope_theta = 1e6;
  config.has_qk_norm = sizes.qk_norm;
  config.tied_head = sizes.tied_head;
  with_context("The recording's sizes of " + what, [&] { validate_config(config); });
  for (const auto& [kind, type] : sizes.types) shape.types.emplace(kind, tensor_type_named(type, kind));
  return shape;
}

}  // namespace

predict::NamedShape target_shape(const TraceHeader& header, const std::string& model) {
  if (!model.empty()) return predict::model_shape(model);
  if (!header.target.sizes) return shape_by_name(header.target);
  return shape_of(header.target, header.target.sizes->vocab, "the model");
}

std::optional<predict::NamedShape> drafter_shape(const TraceHeader& header, const predict::NamedShape& target) {
  if (!header.drafter) return std::nullopt;
  if (!header.drafter->sizes) {
    predict::NamedShape shape = target;
    shape.config.layers = std::min(usual_layers, target.config.layers);
    shape.taps = usual_taps;
    return shape;
  }
  const TraceSizes& sizes = *header.drafter->sizes;
  if (sizes.taps == 0 || sizes.taps > most_taps) {
    throw bad_input("The recording's drafter reads " + std::to_string(sizes.taps) + " layers; allowed: 1 to " +
                    std::to_string(most_taps) + ".");
  }
  const uint32_t tokens = sizes.drafted_tokens > 0 ? sizes.drafted_tokens : target.config.vocab;
  predict::NamedShape shape = shape_of(*header.drafter, tokens, "the drafter");
  shape.taps = sizes.taps;
  shape.config.tied_head = true;  // one matrix stands for both: of the embedding a few rows are read
  const std::string_view head = target.config.tied_head ? "token_embd" : "output";
  const TensorType type = predict::type_of_tensor(target, head, target.config.hidden);
  if (!shape.types.contains("token_embd")) shape.types.emplace("token_embd", type);
  return shape;
}

}  // namespace canopy
