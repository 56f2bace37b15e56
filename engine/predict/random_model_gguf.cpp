#include "engine/predict/random_model_gguf.h"
#include "engine/format/tensor_names.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/format/architecture.h"
#include "engine/format/drafter_gguf.h"
#include "engine/format/fused_tensors.h"
#include "engine/format/gguf_writer.h"

namespace canopy::predict {
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
