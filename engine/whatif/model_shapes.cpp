#include "engine/whatif/model_shapes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/gguf.h"
#include "engine/format/model_families.h"
#include "engine/format/tensor_names.h"

namespace canopy::predict {
namespace {

struct NamedModel {
  std::string_view name;
  std::string_view architecture;
  uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  bool tied_head;
  uint32_t experts = 0, experts_used = 0, expert_ffn = 0;  // of every layer
  // Of hybrids: heads of the recurrences, which are of 128, and the expert that every row goes through.
  uint32_t key_heads = 0, value_heads = 0, shared_ffn = 0;
  uint32_t window = 0;  // of Gemma
};

// From the published configurations; those that are called "tiny" or "small" are none of them: for tests of what takes
// a shape, and to measure what experts cost on a slow device.
constexpr NamedModel kModels[] = {
    {"tiny", "qwen3", 2, 256, 4, 2, 64, 512, 1024, true},
    {"tiny-moe", "qwen3moe", 2, 256, 4, 2, 64, 512, 1024, true, 16, 4, 256},
    {"tiny-hybrid", "qwen35", 4, 256, 4, 2, 64, 512, 1024, true, 0, 0, 0, 2, 4},
    {"tiny-hybrid-moe", "qwen35moe", 4, 256, 4, 2, 64, 512, 1024, true, 16, 4, 256, 2, 4, 256},
    {"tiny-next", "qwen3next", 4, 256, 4, 2, 64, 512, 1024, true, 16, 4, 256, 2, 4, 256},
    {"tiny-gemma", "gemma3", 6, 256, 4, 2, 64, 512, 1024, true, 0, 0, 0, 0, 0, 0, 64},
    {"small-moe", "qwen3moe", 6, 1024, 16, 4, 64, 2048, 4096, true, 16, 2, 1024},
    {"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, true},
    {"smollm2-1.7b", "llama", 24, 2048, 32, 32, 64, 8192, 49152, true},
    {"llama-2-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, false},
    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, true},
    {"llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, true},
    {"llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, false},
    {"llama-3.1-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, false},
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, true},
    {"qwen3-1.7b", "qwen3", 28, 2048, 16, 8, 128, 6144, 151936, true},
    {"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, true},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, false},
    {"qwen3-14b", "qwen3", 40, 5120, 40, 8, 128, 17408, 151936, false},
    {"qwen3-32b", "qwen3", 64, 5120, 64, 8, 128, 25600, 151936, false},
    {"qwen3-30b-a3b", "qwen3moe", 48, 2048, 32, 4, 128, 6144, 151936, false, 128, 8, 768},
    {"qwen3-coder-30b-a3b", "qwen3moe", 48, 2048, 32, 4, 128, 5472, 151936, false, 128, 8, 768},
    {"qwen3.5-9b", "qwen35", 32, 4096, 16, 4, 256, 12288, 248320, false, 0, 0, 0, 16, 32},
    {"qwen3.5-27b", "qwen35", 64, 5120, 24, 4, 256, 17408, 248320, false, 0, 0, 0, 16, 48},
    {"qwen3.5-35b-a3b", "qwen35moe", 40, 2048, 16, 2, 256, 512, 248320, false, 256, 8, 512, 16, 32, 512},
    {"qwen3-next-80b-a3b", "qwen3next", 48, 2048, 16, 2, 256, 5120, 151936, false, 512, 10, 512, 16, 32, 512},
    {"gemma-3-4b", "gemma3", 34, 2560, 8, 4, 256, 10240, 262208, true, 0, 0, 0, 0, 0, 0, 1024},
    {"gemma-3-12b", "gemma3", 48, 3840, 16, 8, 256, 15360, 262208, true, 0, 0, 0, 0, 0, 0, 1024},
};

struct NamedType {
  std::string_view name;
  TensorType matrices, head;
};
constexpr NamedType kWeightNames[] = {
    {"bf16", TensorType::bf16, TensorType::bf16},   {"f16", TensorType::f16, TensorType::f16},
    {"q8_0", TensorType::q8_0, TensorType::q8_0},   {"q6_k", TensorType::q6_k, TensorType::q6_k},
    {"q4_k_m", TensorType::q4_k, TensorType::q6_k}, {"q4_k", TensorType::q4_k, TensorType::q6_k},
    {"q4_1", TensorType::q4_1, TensorType::q6_k},   {"q4_0", TensorType::q4_0, TensorType::q6_k},
};

const NamedType* named_type(std::string_view name) {
  const auto found = std::ranges::find(kWeightNames, name, &NamedType::name);
  return found == std::end(kWeightNames) ? nullptr : &*found;
}

template <class Entries>
std::string names_of(const Entries& entries) {
  std::string names;
  for (const auto& each : entries) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

/// As all published Qwen3.5 and Qwen3-Next are: three recurrences, then attention that has a gate and turns a quarter
/// of its heads. In GGUF Qwen3-Next has its value heads in another order, and the rates of a recurrence in one matrix.
void make_hybrid(const NamedModel& model, ModelConfig& config) {
  const bool is_next = model.architecture == "qwen3next";
  config.recurrent = recurrent_layers(model.layers, kUsualAttentionStep);
  config.delta_net = {.key_heads = model.key_heads,
                      .value_heads = model.value_heads,
                      .key_dim = 128,
                      .value_dim = 128,
                      .taps = 4,
                      .tiled = !is_next,
                      .has_joined_rates = is_next};
  config.has_output_gate = true;
  config.rotary_dim = model.head_dim / 4;
}

/// Gemma 3 from 4B on.
void make_gemma(const NamedModel& model, ModelConfig& config) {
  config.rope_scaling.kind = RopeScaling::Kind::linear;
  config.rope_scaling.factor = 8;
  set_gemma3(model.window, config);
}

ModelConfig config_of(const NamedModel& model) {
  ModelConfig config;
  config.architecture = model.architecture;
  config.name = model.name;
  config.layers = model.layers;
  config.hidden = model.hidden;
  config.heads = model.heads;
  config.kv_heads = model.kv_heads;
  config.head_dim = model.head_dim;
  config.ffn = model.ffn;
  config.vocab = model.vocab;
  config.max_context = 131072;
  config.rms_eps = 1e-6f;
  config.rope_theta = 1e6;
  const Architecture& architecture = architecture_by_name(model.architecture);
  config.has_qk_norm = architecture.has_qk_norm;
  config.rope_layout = architecture.gguf_rope_layout;
  config.experts = model.experts;
  config.experts_used = model.experts_used;
  config.expert_ffn = model.expert_ffn;
  if (model.experts > 0) config.has_experts.assign(model.layers, true);
  config.shared_ffn = model.shared_ffn;
  if (model.value_heads > 0) make_hybrid(model, config);
  if (architecture.is_gemma) make_gemma(model, config);
  config.tied_head = model.tied_head;
  return config;
}

/// The layer of "blk.3.attn_v".
std::optional<uint32_t> layer_of(std::string_view tensor) {
  if (!tensor.starts_with("blk.")) return std::nullopt;
  tensor.remove_prefix(4);
  uint32_t layer = 0;
  const auto [stop, error] = std::from_chars(tensor.data(), tensor.data() + tensor.size(), layer);
  return error == std::errc() ? std::optional(layer) : std::nullopt;
}

/// llama.cpp's Q4_K_M keeps these layers' attn_v and ffn_down in Q6_K: the first and the last eighth, and a third of
/// the others.
bool has_finer_types(uint32_t layer, uint32_t layers) {
  const uint32_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

TensorType with_whole_blocks(TensorType type, uint64_t cols) {
  if (cols % 256 == 0) return type;
  if (type == TensorType::q4_k) return TensorType::q5_0;
  return type == TensorType::q6_k ? TensorType::q8_0 : type;
}

}  // namespace

std::string allowed_shapes() {
  return "MODEL-TYPE, where MODEL is one of " + names_of(kModels) + ", and TYPE one of " + names_of(kWeightNames);
}

NamedShape model_shape(std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash != std::string_view::npos) {
    const NamedType* const type = named_type(name.substr(dash + 1));
    const auto model = std::ranges::find(kModels, name.substr(0, dash), &NamedModel::name);
    if (type != nullptr && model != std::end(kModels)) {
      return {std::string(name), config_of(*model), std::string(type->name)};
    }
  }
  throw bad_input("There is no file and no shape of a model named '" + printable(name) + "'; allowed: a file, or " +
                  allowed_shapes() + ".");
}

std::string shape_name(const ModelConfig& config) {
  std::string type;
  for (const char c : config.quantization) type += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const NamedModel& model : kModels) {
    const ModelConfig known = config_of(model);
    const auto sizes = [](const ModelConfig& c) {
      return std::tuple(c.architecture, c.layers, c.hidden, c.heads, c.kv_heads, c.layer_heads, c.layer_kv_heads,
                        c.head_dim, c.ffn, c.vocab, c.experts, c.experts_used, c.expert_ffn, c.shared_ffn,
                        c.recurrent_layers(), c.delta_net.value_heads);
    };
    if (sizes(known) == sizes(config)) return std::string(model.name) + "-" + type;
  }
  return config.architecture + "-" + std::to_string(config.layers) + "x" + std::to_string(config.hidden) + "-" + type;
}

ModelFile random_model(const NamedShape& shape) {
  return ModelFile::of_random_weights(
      shape.config, [&shape](std::string_view tensor, uint64_t cols) { return type_of_tensor(shape, tensor, cols); });
}

namespace {

/// Of a target's sizes but for the layers; drafters are dense, attention throughout, and see all of the text.
ModelConfig drafter_transformer(const ModelConfig& target) {
  ModelConfig own;
  own.architecture = target.has_qk_norm ? "qwen3" : "llama";
  own.name = target.name + "-dflash";
  own.hidden = target.hidden;
  own.heads = target.heads;
  own.kv_heads = target.kv_heads;
  own.head_dim = target.head_dim;
  own.ffn = target.ffn;
  own.max_context = target.max_context;
  own.rms_eps = target.rms_eps;
  own.rope_theta = target.rope_theta;
  own.rope_layout = target.rope_layout;
  own.has_qk_norm = target.has_qk_norm;
  own.tied_head = target.tied_head;
  return own;
}

}  // namespace

DrafterFile random_drafter(const NamedShape& shape) {
  constexpr uint32_t layers = 5, block = 16;
  DrafterConfig drafter;
  drafter.transformer = drafter_transformer(shape.config);
  drafter.transformer.layers = std::min(layers, shape.config.layers);
  drafter.attention.assign(drafter.transformer.layers, drafter_attention(0));
  drafter.block_size = block;
  drafter.vocab = shape.config.vocab;
  drafter.target_layers = shape.config.layers;
  // From the second layer to the fourth from the end, evenly, where there are as many.
  const uint32_t first = std::min(1u, shape.config.layers - 1);
  const uint32_t last = std::max(first, shape.config.layers - std::min(shape.config.layers, 3u));
  for (uint32_t i = 0; i < layers; ++i) {
    const uint32_t layer = first + (last - first) * i / (layers - 1);
    if (drafter.aux_layers.empty() || drafter.aux_layers.back() != layer) drafter.aux_layers.push_back(layer);
  }
  return DrafterFile::of_random_weights(
      drafter, [&shape](std::string_view tensor, uint64_t cols) { return type_of_tensor(shape, tensor, cols); });
}

TensorType type_of_tensor(const NamedShape& shape, std::string_view name, uint64_t cols) {
  const std::string_view tensor = without_expert(name);
  if (tensor.ends_with(".ffn_gate_inp") || tensor.ends_with(".ssm_conv1d")) return TensorType::f32;
  const size_t dot = tensor.rfind('.');
  const auto given = shape.types.find(dot == std::string_view::npos ? tensor : tensor.substr(dot + 1));
  if (given != shape.types.end()) {
    const TensorTypeInfo& info = tensor_type_info(given->second);
    if (cols % info.block_elements == 0) return given->second;
    throw bad_input("Matrices " + printable(given->first) + " are of the type " + std::string(info.name) +
                    ", but their rows of " + std::to_string(cols) + " elements are no whole blocks of " +
                    std::to_string(info.block_elements) + ".");
  }
  const NamedType* const type = named_type(shape.weights);
  if (type == nullptr) {
    throw bad_input("A shape has weights of type '" + printable(shape.weights) +
                    "'; allowed: " + names_of(kWeightNames) + ".");
  }
  const bool is_head = tensor == "output" || (tensor == "token_embd" && shape.config.tied_head);
  if (is_head) return with_whole_blocks(type->head, cols);
  const std::optional<uint32_t> layer = layer_of(tensor);
  const bool can_be_finer = tensor.ends_with(".attn_v") || tensor.ends_with(".ffn_down");
  if (shape.weights == "q4_k_m" && layer && can_be_finer && has_finer_types(*layer, shape.config.layers)) {
    return with_whole_blocks(TensorType::q6_k, cols);
  }
  return with_whole_blocks(type->matrices, cols);
}

namespace {

// Of tokens, as llama.cpp numbers them.
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;

void add_gemma(const ModelConfig& config, GgufWriter& writer) {
  const std::string& prefix = config.architecture;
  if (!config.windows.empty()) {  // where they are the reader knows
    writer.u32(prefix + ".attention.sliding_window", std::ranges::max(config.windows));
    writer.f32(prefix + ".rope.freq_base_swa", static_cast<float>(config.local_rope_theta));
  }
  writer.text(prefix + ".rope.scaling.type", "linear");
  writer.f32(prefix + ".rope.scaling.factor", static_cast<float>(config.rope_scaling.factor));
}

void add_config(const ModelConfig& config, GgufWriter& writer) {
  const std::string& prefix = config.architecture;
  const auto u32 = [&](const char* key, uint32_t value) { writer.u32(prefix + key, value); };
  u32(".block_count", config.layers);
  u32(".context_length", config.max_context);
  u32(".embedding_length", config.hidden);
  u32(".feed_forward_length", config.ffn);
  u32(".attention.head_count", config.heads);
  u32(".attention.head_count_kv", config.kv_heads);
  u32(".attention.key_length", config.head_dim);
  u32(".attention.value_length", config.head_dim);
  u32(".rope.dimension_count", config.turned());
  u32(".vocab_size", config.vocab);
  if (config.experts > 0) {
    u32(".expert_count", config.experts);
    u32(".expert_used_count", config.experts_used);
    u32(".expert_feed_forward_length", config.expert_ffn);
  }
  if (config.shared_ffn > 0) u32(".expert_shared_feed_forward_length", config.shared_ffn);
  if (config.recurrent_layers() > 0) {
    const DeltaNetConfig& net = config.delta_net;
    u32(".full_attention_interval", kUsualAttentionStep);
    u32(".ssm.group_count", net.key_heads);
    u32(".ssm.time_step_rank", net.value_heads);
    u32(".ssm.state_size", net.key_dim);
    u32(".ssm.inner_size", net.values());
    u32(".ssm.conv_kernel", net.taps);
  }
  if (architecture_by_name(config.architecture).is_gemma) add_gemma(config, writer);
  writer.f32(prefix + ".attention.layer_norm_rms_epsilon", config.rms_eps);
  writer.f32(prefix + ".rope.freq_base", static_cast<float>(config.rope_theta));
}

/// Every byte has a token; the others are words that no text has.
void add_vocabulary(uint32_t size, GgufWriter& writer) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {kUnknown, kControl, kControl};
  for (int byte = 0; byte < 256; ++byte) {
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "<0x%02X>", static_cast<unsigned>(byte));
    tokens.emplace_back(text.data());
    types.push_back(kByte);
  }
  if (size < tokens.size()) {
    throw bad_input("A model with a vocabulary of " + std::to_string(size) + " tokens cannot be made; allowed: from " +
                    std::to_string(tokens.size()) + " on.");
  }
  for (size_t id = tokens.size(); id < size; ++id) {
    tokens.push_back("[word " + std::to_string(id) + "]");
    types.push_back(kNormal);
  }
  writer.text("tokenizer.ggml.model", "llama");
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.i32s("tokenizer.ggml.token_type", types);
  writer.f32s("tokenizer.ggml.scores", std::vector<float>(tokens.size(), 0.0f));
  writer.u32("tokenizer.ggml.unknown_token_id", 0);
  writer.u32("tokenizer.ggml.bos_token_id", 1);
  writer.u32("tokenizer.ggml.eos_token_id", 2);
  writer.boolean("tokenizer.ggml.add_space_prefix", false);
}

/// The name in a GGUF file: the canonical one with ".weight", but for biases, for rates of recurrences, for the norm
/// behind the mixers of hybrids and for post norms.
std::string gguf_name(const std::string& canonical, bool is_hybrid) {
  if (canonical.ends_with(".bias") || canonical.ends_with(".ssm_a")) return canonical;
  const std::pair<std::string_view, std::string_view> norms[] = {
      {is_hybrid ? ".ffn_norm" : ".attn_post_norm", ".post_attention_norm"}, {".ffn_post_norm", ".post_ffw_norm"}};
  for (const auto& [ours, theirs] : norms) {
    if (!canonical.ends_with(ours)) continue;
    return canonical.substr(0, canonical.size() - ours.size()) + std::string(theirs) + ".weight";
  }
  return canonical + ".weight";
}

void add_tensors(const ModelFile& model, const ModelConfig& config, GgufWriter& writer) {
  for (const RequiredTensor& wanted : required_tensors(config)) {
    if (without_expert(wanted.name) != wanted.name) continue;
    const TensorView& tensor = model.require(wanted.name, wanted.rows, wanted.cols);
    writer.tensor(gguf_name(wanted.name, config.recurrent_layers() > 0), std::span(tensor.shape).first(tensor.rank),
                  tensor.type, {tensor.bytes});
  }
  for (const FusedTensor& stacked : stacked_experts(config, true, [](const std::string&) { return false; })) {
    const RequiredTensor& first = stacked.parts.front();
    std::vector<std::span<const std::byte>> parts;
    for (const RequiredTensor& part : stacked.parts) {
      parts.push_back(model.require(part.name, part.rows, part.cols).bytes);
    }
    const std::array<uint64_t, 3> shape = {stacked.stacked, first.rows, first.cols};
    writer.tensor(stacked.name + ".weight", shape, model.require(first.name, first.rows, first.cols).type,
                  std::move(parts));
  }
}

}  // namespace

void write_random_model(const NamedShape& shape, const PutBytes& put) {
  const ModelFile model = random_model(shape);
  GgufWriter writer;
  writer.text("general.architecture", shape.config.architecture);
  writer.text("general.type", "model");
  writer.text("general.name", shape.name + ", random weights");
  writer.u32("general.quantization_version", 2);
  add_config(shape.config, writer);
  add_vocabulary(shape.config.vocab, writer);
  add_tensors(model, shape.config, writer);
  writer.write(put);
}

void write_random_drafter(const NamedShape& shape, const PutBytes& put) {
  NamedShape bytes = shape;
  bytes.weights = "q8_0";
  bytes.types.clear();
  const DrafterFile drafter = random_drafter(bytes);
  write_drafter_gguf(drafter, {.type = TensorType::q8_0, .name = shape.name + "-dflash, random weights"}, put);
}

}  // namespace canopy::predict
