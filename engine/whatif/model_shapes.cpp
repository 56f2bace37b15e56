#include "engine/whatif/model_shapes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/architecture.h"
#include "engine/format/gemma4.h"
#include "engine/format/gguf.h"
#include "engine/format/hybrids.h"
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
  // Of hybrids: heads of the recurrences, which are of 128 (values of Granite's of 64), and the expert that every row
  // goes through.
  uint32_t key_heads = 0, value_heads = 0, shared_ffn = 0;
  uint32_t window = 0;  // of Gemma
  // Of Gemma 4: of heads in layers with a window, and how many heads of keys the other layers have.
  uint32_t local_head_dim = 0, full_kv_heads = 0;
  // Of its small models: width of the inputs of layers, layers that read another's keys, each so many-th sees the whole
  // text, and whether those that read another's keys have feed-forwards of twice the width.
  uint32_t layer_inputs = 0, shared_kv = 0, full_step = 0;
  bool wide_ends = false;
  // Of models whose first layers have no experts: how many these are, whether routers have sigmoids, and sizes of
  // latent attention, or whether heads of queries and keys have norms.
  LatentAttention latent = {};
  bool has_sigmoid = false;
  uint32_t dense_layers = 1;
  bool normed_heads = false;
  // Of Nemotron: a letter for each layer, and elements of a scan's values.
  std::string_view pattern = {};
  uint32_t scan_dim = 0;
  // Of LFM2: the layers of attention, a bit for each; the others are short convolutions.
  uint64_t attention = 0;
};

// Of latent attention heads turn 64 elements beside their latents.
constexpr uint32_t kTurnedBesideLatents = 64;

// Of LFM2 with 16 layers.
constexpr uint64_t kLfm2Attention = 1 << 2 | 1 << 5 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 14;

// From the published configurations; those that are called "tiny" or "small" are none of them: for tests of what takes
// a shape, and to measure what experts cost on a slow device.
constexpr NamedModel kModels[] = {
    {"tiny", "qwen3", 2, 256, 4, 2, 64, 512, 1024, true},
    {"tiny-moe", "qwen3moe", 2, 256, 4, 2, 64, 512, 1024, true, 16, 4, 256},
    {"tiny-hybrid", "qwen35", 4, 256, 4, 2, 64, 512, 1024, true, 0, 0, 0, 2, 4},
    {"tiny-hybrid-moe", "qwen35moe", 4, 256, 4, 2, 64, 512, 1024, true, 16, 4, 256, 2, 4, 256},
    {"tiny-next", "qwen3next", 4, 256, 4, 2, 64, 512, 1024, true, 16, 4, 256, 2, 4, 256},
    {"tiny-granite", "granitehybrid", 6, 256, 4, 2, 64, 512, 1024, true, 0, 0, 0, 1, 8},
    {"tiny-granite-moe", "granitehybrid", 6, 256, 4, 2, 64, 256, 1024, true, 16, 4, 256, 1, 8, 512},
    {.name = "tiny-nemotron",
     .architecture = "nemotron_h_moe",
     .layers = 6,
     .hidden = 256,
     .heads = 4,
     .kv_heads = 2,
     .head_dim = 64,
     .ffn = 256,
     .vocab = 1024,
     .tied_head = true,
     .experts = 16,
     .experts_used = 4,
     .expert_ffn = 256,
     .key_heads = 2,
     .value_heads = 8,
     .shared_ffn = 512,
     .pattern = "ME*M-E",
     .scan_dim = 64},
    {"tiny-gemma", "gemma3", 6, 256, 4, 2, 64, 512, 1024, true, 0, 0, 0, 0, 0, 0, 64},
    {"tiny-gemma4", "gemma4", 6, 256, 4, 2, 128, 512, 1024, true, 0, 0, 0, 0, 0, 0, 64, 64, 1},
    {"tiny-gemma4-e", "gemma4", 5, 256, 4, 2, 128, 512, 1024, true, 0, 0, 0, 0, 0, 0, 64, 64, 2, 32, 2, 3, true},
    {"tiny-gemma4-moe", "gemma4", 6, 256, 4, 2, 128, 512, 1024, true, 16, 4, 256, 0, 0, 0, 64, 64, 1},
    {.name = "tiny-latent",
     .architecture = "deepseek2",
     .layers = 3,
     .hidden = 256,
     .heads = 4,
     .kv_heads = 1,
     .head_dim = 128 + kTurnedBesideLatents,
     .ffn = 512,
     .vocab = 1024,
     .tied_head = true,
     .experts = 16,
     .experts_used = 4,
     .expert_ffn = 256,
     .shared_ffn = 256,
     .latent = {.rank = 128, .query_rank = 256, .key_dim = 64, .value_dim = 64},
     .has_sigmoid = true},
    {"tiny-mistral3", "mistral3", 2, 256, 4, 2, 64, 512, 1024, true},
    {.name = "tiny-glm",
     .architecture = "glm4moe",
     .layers = 3,
     .hidden = 256,
     .heads = 4,
     .kv_heads = 2,
     .head_dim = 64,
     .ffn = 512,
     .vocab = 1024,
     .tied_head = true,
     .experts = 16,
     .experts_used = 4,
     .expert_ffn = 256,
     .shared_ffn = 256,
     .has_sigmoid = true,
     .normed_heads = true},
    {.name = "tiny-lfm2",
     .architecture = "lfm2",
     .layers = 4,
     .hidden = 256,
     .heads = 4,
     .kv_heads = 2,
     .head_dim = 64,
     .ffn = 512,
     .vocab = 1024,
     .tied_head = true,
     .attention = 0b1010},
    {"small-moe", "qwen3moe", 6, 1024, 16, 4, 64, 2048, 4096, true, 16, 2, 1024},
    {"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, true},
    {"smollm2-1.7b", "llama", 24, 2048, 32, 32, 64, 8192, 49152, true},
    {"llama-2-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, false},
    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, true},
    {"llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, true},
    {"llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, false},
    {"llama-3.1-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, false},
    {"ministral-3-3b", "mistral3", 26, 3072, 32, 8, 128, 9216, 131072, true},
    {"ministral-3-8b", "mistral3", 34, 4096, 32, 8, 128, 14336, 131072, false},
    {"ministral-3-14b", "mistral3", 40, 5120, 32, 8, 128, 16384, 131072, false},
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, true},
    {"qwen3-1.7b", "qwen3", 28, 2048, 16, 8, 128, 6144, 151936, true},
    {"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, true},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, false},
    {"qwen3-14b", "qwen3", 40, 5120, 40, 8, 128, 17408, 151936, false},
    {"qwen3-32b", "qwen3", 64, 5120, 64, 8, 128, 25600, 151936, false},
    {"qwen3-vl-2b", "qwen3vl", 28, 2048, 16, 8, 128, 6144, 151936, true},
    {"qwen3-vl-4b", "qwen3vl", 36, 2560, 32, 8, 128, 9728, 151936, true},
    {"qwen3-vl-8b", "qwen3vl", 36, 4096, 32, 8, 128, 12288, 151936, false},
    {"qwen3-vl-32b", "qwen3vl", 64, 5120, 64, 8, 128, 25600, 151936, false},
    {"qwen3-vl-30b-a3b", "qwen3vlmoe", 48, 2048, 32, 4, 128, 6144, 151936, false, 128, 8, 768},
    {"qwen3-30b-a3b", "qwen3moe", 48, 2048, 32, 4, 128, 6144, 151936, false, 128, 8, 768},
    {"qwen3-coder-30b-a3b", "qwen3moe", 48, 2048, 32, 4, 128, 5472, 151936, false, 128, 8, 768},
    {"qwen3.5-9b", "qwen35", 32, 4096, 16, 4, 256, 12288, 248320, false, 0, 0, 0, 16, 32},
    {"qwen3.5-27b", "qwen35", 64, 5120, 24, 4, 256, 17408, 248320, false, 0, 0, 0, 16, 48},
    {"qwen3.5-35b-a3b", "qwen35moe", 40, 2048, 16, 2, 256, 512, 248320, false, 256, 8, 512, 16, 32, 512},
    {"qwen3-next-80b-a3b", "qwen3next", 48, 2048, 16, 2, 256, 5120, 151936, false, 512, 10, 512, 16, 32, 512},
    {.name = "lfm2-350m",
     .architecture = "lfm2",
     .layers = 16,
     .hidden = 1024,
     .heads = 16,
     .kv_heads = 8,
     .head_dim = 64,
     .ffn = 4608,
     .vocab = 65536,
     .tied_head = true,
     .attention = kLfm2Attention},
    {.name = "lfm2-700m",
     .architecture = "lfm2",
     .layers = 16,
     .hidden = 1536,
     .heads = 24,
     .kv_heads = 8,
     .head_dim = 64,
     .ffn = 6912,
     .vocab = 65536,
     .tied_head = true,
     .attention = kLfm2Attention},
    {.name = "lfm2-1.2b",
     .architecture = "lfm2",
     .layers = 16,
     .hidden = 2048,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 64,
     .ffn = 8192,
     .vocab = 65536,
     .tied_head = true,
     .attention = kLfm2Attention},
    {.name = "lfm2-2.6b",
     .architecture = "lfm2",
     .layers = 30,
     .hidden = 2048,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 64,
     .ffn = 10752,
     .vocab = 65536,
     .tied_head = true,
     .attention = 0b0'0100'1000'1000'1000'1000'1000'1001'00},
    {.name = "deepseek-v2-lite",
     .architecture = "deepseek2",
     .layers = 27,
     .hidden = 2048,
     .heads = 16,
     .kv_heads = 1,
     .head_dim = 512 + kTurnedBesideLatents,
     .ffn = 10944,
     .vocab = 102400,
     .tied_head = false,
     .experts = 64,
     .experts_used = 6,
     .expert_ffn = 1408,
     .shared_ffn = 2816,
     .latent = {.rank = 512, .query_rank = 0, .key_dim = 128, .value_dim = 128}},
    {.name = "glm-4.7-flash",
     .architecture = "deepseek2",
     .layers = 47,
     .hidden = 2048,
     .heads = 20,
     .kv_heads = 1,
     .head_dim = 512 + kTurnedBesideLatents,
     .ffn = 10240,
     .vocab = 154880,
     .tied_head = false,
     .experts = 64,
     .experts_used = 4,
     .expert_ffn = 1536,
     .shared_ffn = 1536,
     .latent = {.rank = 512, .query_rank = 768, .key_dim = 192, .value_dim = 256},
     .has_sigmoid = true},
    {"granite-4.0-h-micro", "granitehybrid", 40, 2048, 32, 8, 64, 8192, 100352, true, 0, 0, 0, 1, 64},
    {"granite-4.0-h-tiny", "granitehybrid", 40, 1536, 12, 4, 128, 512, 100352, true, 64, 6, 512, 1, 48, 1024},
    {"granite-4.0-h-small", "granitehybrid", 40, 4096, 32, 8, 128, 768, 100352, true, 72, 10, 768, 1, 128, 1536},
    {.name = "glm-4.5-air",
     .architecture = "glm4moe",
     .layers = 46,
     .hidden = 4096,
     .heads = 96,
     .kv_heads = 8,
     .head_dim = 128,
     .ffn = 10944,
     .vocab = 151552,
     .tied_head = false,
     .experts = 128,
     .experts_used = 8,
     .expert_ffn = 1408,
     .shared_ffn = 1408,
     .has_sigmoid = true},
    {.name = "glm-4.5",
     .architecture = "glm4moe",
     .layers = 92,
     .hidden = 5120,
     .heads = 96,
     .kv_heads = 8,
     .head_dim = 128,
     .ffn = 12288,
     .vocab = 151552,
     .tied_head = false,
     .experts = 160,
     .experts_used = 8,
     .expert_ffn = 1536,
     .shared_ffn = 1536,
     .has_sigmoid = true,
     .dense_layers = 3,
     .normed_heads = true},
    {.name = "nemotron-nano-9b-v2",
     .architecture = "nemotron_h",
     .layers = 56,
     .hidden = 4480,
     .heads = 40,
     .kv_heads = 8,
     .head_dim = 128,
     .ffn = 15680,
     .vocab = 131072,
     .tied_head = false,
     .key_heads = 8,
     .value_heads = 128,
     .pattern = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
     .scan_dim = 80},
    {.name = "nemotron-3-nano-30b-a3b",
     .architecture = "nemotron_h_moe",
     .layers = 52,
     .hidden = 2688,
     .heads = 32,
     .kv_heads = 2,
     .head_dim = 128,
     .ffn = 1856,
     .vocab = 131072,
     .tied_head = false,
     .experts = 128,
     .experts_used = 6,
     .expert_ffn = 1856,
     .key_heads = 8,
     .value_heads = 64,
     .shared_ffn = 3712,
     .pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
     .scan_dim = 64},
    {"gemma-3-4b", "gemma3", 34, 2560, 8, 4, 256, 10240, 262208, true, 0, 0, 0, 0, 0, 0, 1024},
    {"gemma-3-12b", "gemma3", 48, 3840, 16, 8, 256, 15360, 262208, true, 0, 0, 0, 0, 0, 0, 1024},
    {"gemma-4-e2b", "gemma4", 35, 1536, 8, 1, 512, 6144, 262144, true, 0, 0, 0, 0, 0, 0, 512, 256, 1, 256, 20, 5, true},
    {"gemma-4-e4b", "gemma4", 42, 2560, 8, 2, 512, 10240, 262144, true, 0, 0, 0, 0, 0, 0, 512, 256, 2, 256, 18, 6},
    {"gemma-4-12b", "gemma4", 48, 3840, 16, 8, 512, 15360, 262144, true, 0, 0, 0, 0, 0, 0, 1024, 256, 1},
    {"gemma-4-26b-a4b", "gemma4", 30, 2816, 16, 8, 512, 2112, 262144, true, 128, 8, 704, 0, 0, 0, 1024, 256, 2},
    {"gemma-4-31b", "gemma4", 60, 5376, 32, 16, 512, 21504, 262144, true, 0, 0, 0, 0, 0, 0, 1024, 256, 4},
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

/// As all published Granite 4 with scans: of ten layers one of attention, the sixth, without positions. Factors change
/// no time.
void make_granite(const NamedModel& model, ModelConfig& config) {
  for (uint32_t n = 0; n < model.layers; ++n) config.recurrent.push_back(n % 10 != 5);
  config.delta_net = {.key_heads = model.key_heads,
                      .value_heads = model.value_heads,
                      .key_dim = 128,
                      .value_dim = 64,
                      .taps = 4,
                      .scans = true,
                      .has_conv_bias = true};
  config.rotates.assign(model.layers, false);
  if (model.experts > 0) config.gates_shared_expert = false;
}

/// Ministral 3.
void make_mistral3(ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  scaling.kind = RopeScaling::Kind::yarn;
  scaling.factor = 16;
  scaling.original_context = 16384;
  scaling.query_growth = 0.1;
}

void make_nemotron(const NamedModel& model, ModelConfig& config) {
  config.has_experts.clear();
  set_nemotron_layers(model.pattern, config);
  config.delta_net = {.key_heads = model.key_heads,
                      .value_heads = model.value_heads,
                      .key_dim = 128,
                      .value_dim = model.scan_dim,
                      .taps = 4,
                      .scans = true,
                      .has_conv_bias = true};
  if (config.has_experts.empty()) return;
  config.gates_shared_expert = false;
  config.router_has_sigmoid = config.has_choice_bias = true;
}

/// Gemma 3 from 4B on.
void make_gemma(const NamedModel& model, ModelConfig& config) {
  config.rope_scaling.kind = RopeScaling::Kind::linear;
  config.rope_scaling.factor = 8;
  set_gemma3(model.window, config);
}

void make_gemma4(const NamedModel& model, ModelConfig& config) {
  config.rope_scaling.kind = RopeScaling::Kind::proportional;
  config.rope_scaling.turned_pairs = model.head_dim / 8;  // a quarter of them
  config.logit_softcap = 30;
  config.has_experts_beside = model.experts > 0;
  config.layer_inputs = model.layer_inputs;
  config.shared_kv_layers = model.shared_kv;
  const std::vector<bool> all =
      model.full_step != 0 ? gemma4_sliding_layers(model.layers, model.full_step) : gemma4_sliding_layers(model.layers);
  for (uint32_t n = 0; n < model.layers; ++n) {
    config.windows.push_back(all[n] ? model.window : 0);
    if (model.full_kv_heads != model.kv_heads)
      config.layer_kv_heads.push_back(all[n] ? model.kv_heads : model.full_kv_heads);
    if (model.layer_inputs == 0) config.values_of_keys.push_back(!all[n]);
    if (model.wide_ends) config.layer_ffn.push_back(config.has_own_kv(n) ? model.ffn : 2 * model.ffn);
  }
  if (model.wide_ends) config.ffn = 2 * model.ffn;
  set_gemma4(all, model.local_head_dim, config);
}

void make_latent(const NamedModel& model, ModelConfig& config) {
  config.latent = model.latent;
  config.rotary_dim = kTurnedBesideLatents;
  config.query_width = model.latent.key_dim + kTurnedBesideLatents;
}

/// Of routers and shared experts, as of DeepSeek 3.
void make_routed(const NamedModel& model, ModelConfig& config) {
  std::fill_n(config.has_experts.begin(), model.dense_layers, false);
  config.gates_shared_expert = false;
  config.shares_among_chosen = model.has_sigmoid;
  config.router_has_sigmoid = config.has_choice_bias = model.has_sigmoid;
}

void make_lfm2(const NamedModel& model, ModelConfig& config) {
  for (uint32_t n = 0; n < model.layers; ++n) config.recurrent.push_back((model.attention >> n & 1) == 0);
  config.conv_taps = 3;
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
  if (architecture.is_hybrid) make_hybrid(model, config);
  if (architecture.is_granite) make_granite(model, config);
  if (architecture.name == "mistral3") make_mistral3(config);
  if (architecture.is_nemotron) make_nemotron(model, config);
  if (architecture.is_gemma && !architecture.is_gemma4) make_gemma(model, config);
  if (architecture.is_gemma4) make_gemma4(model, config);
  if (architecture.is_latent) make_latent(model, config);
  if (architecture.has_dense_start) make_routed(model, config);
  if (architecture.is_lfm2) make_lfm2(model, config);
  if (architecture.is_glm4) {
    config.has_qkv_bias = true;
    config.has_qk_norm = model.normed_heads;
    config.rotary_dim = model.head_dim / 2;
  }
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
                        c.head_dim, c.local_head_dim, c.layer_inputs, c.shared_kv_layers, c.layer_ffn, c.ffn, c.vocab,
                        c.experts, c.experts_used, c.expert_ffn, c.shared_ffn, c.recurrent_layers(),
                        c.delta_net.value_heads, c.latent.rank, c.latent.query_rank, c.latent.key_dim,
                        c.latent.value_dim, c.attention_layers());
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
  own.kv_heads = target.has_latent_attention() ? std::gcd(target.heads, 4u) : target.kv_heads;
  own.head_dim = target.has_latent_attention() ? 128 : target.head_dim;
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
  for (const char* kept : {".ffn_gate_inp", ".ssm_conv1d", ".shortconv.conv", ".layer_output_scale"}) {
    if (tensor.ends_with(kept)) return TensorType::f32;
  }
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

void add_mistral3(const ModelConfig& config, GgufWriter& writer) {
  const RopeScaling& scaling = config.rope_scaling;
  writer.text("mistral3.rope.scaling.type", "yarn");
  writer.f32("mistral3.rope.scaling.factor", static_cast<float>(scaling.factor));
  writer.u32("mistral3.rope.scaling.original_context_length", scaling.original_context);
  writer.f32("mistral3.rope.scaling.yarn_log_multiplier", 1);
  writer.f32("mistral3.attention.temperature_scale", static_cast<float>(scaling.query_growth));
}

void add_gemma(const ModelConfig& config, GgufWriter& writer) {
  const std::string& prefix = config.architecture;
  if (!config.windows.empty()) {  // where they are the reader knows
    writer.u32(prefix + ".attention.sliding_window", std::ranges::max(config.windows));
    writer.f32(prefix + ".rope.freq_base_swa", static_cast<float>(config.local_rope_theta));
  }
  writer.text(prefix + ".rope.scaling.type", "linear");
  writer.f32(prefix + ".rope.scaling.factor", static_cast<float>(config.rope_scaling.factor));
}

void add_gemma4(const ModelConfig& config, GgufWriter& writer) {
  const uint32_t local = config.local_head_dim != 0 ? config.local_head_dim : config.head_dim;
  writer.u32("gemma4.attention.sliding_window", std::ranges::max(config.windows));
  writer.booleans("gemma4.attention.sliding_window_pattern", config.turns_locally);
  for (const char* key : {"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"}) {
    writer.u32(std::string("gemma4.") + key, local);
  }
  writer.u32("gemma4.embedding_length_per_layer_input", config.layer_inputs);
  writer.u32("gemma4.attention.shared_kv_layers", config.shared_kv_layers);
  writer.f32("gemma4.rope.freq_base_swa", static_cast<float>(config.local_rope_theta));
  writer.f32("gemma4.final_logit_softcapping", config.logit_softcap);
}

void add_latent(const ModelConfig& config, GgufWriter& writer) {
  const LatentAttention& latent = config.latent;
  const auto u32 = [&](const char* key, uint32_t value) { writer.u32(std::string("deepseek2.") + key, value); };
  if (latent.query_rank != 0) u32("attention.q_lora_rank", latent.query_rank);
  u32("attention.kv_lora_rank", latent.rank);
  u32("attention.key_length_mla", latent.key_dim + config.rotary_dim);
  u32("attention.value_length_mla", latent.value_dim);
}

/// Layers without heads of keys are convolutions.
void add_lfm2(const ModelConfig& config, GgufWriter& writer) {
  std::vector<int32_t> heads;
  for (uint32_t n = 0; n < config.layers; ++n) {
    heads.push_back(config.is_recurrent(n) ? 0 : static_cast<int32_t>(config.kv_heads));
  }
  writer.i32s("lfm2.attention.head_count_kv", heads);
  writer.u32("lfm2.shortconv.l_cache", config.conv_taps);
}

void add_routed(const ModelConfig& config, GgufWriter& writer) {
  const auto u32 = [&](const char* key, uint32_t value) { writer.u32(config.architecture + key, value); };
  u32(".leading_dense_block_count", config.layers - config.layers_with_experts());
  u32(".expert_shared_count", config.shared_ffn / config.expert_ffn);
  u32(".expert_gating_func", config.router_has_sigmoid ? 2 : 1);
  writer.boolean(config.architecture + ".expert_weights_norm", config.shares_among_chosen);
}

void add_granite(const ModelConfig& config, GgufWriter& writer) {
  writer.boolean("granitehybrid.rope.scaling.finetuned", config.rotates.empty());
  writer.f32("granitehybrid.embedding_scale", config.embedding_scale);
  writer.f32("granitehybrid.residual_scale", 1 / config.residual_scale);
  writer.f32("granitehybrid.logit_scale", config.logit_divisor);
  writer.f32("granitehybrid.attention.scale", static_cast<float>(config.query_scale()));
}

/// Widths and heads of keys, of the layers that have any.
void add_nemotron(const ModelConfig& config, GgufWriter& writer) {
  const std::string& prefix = config.architecture;
  std::vector<int32_t> widths, heads;
  for (uint32_t n = 0; n < config.layers; ++n) {
    const uint32_t width = config.layer_has_experts(n) ? config.expert_ffn : config.ffn_of(n);
    widths.push_back(config.layer_has_feed_forward(n) ? static_cast<int32_t>(width) : 0);
    heads.push_back(config.is_attention(n) ? static_cast<int32_t>(config.kv_heads_of(n)) : 0);
  }
  writer.i32s(prefix + ".feed_forward_length", widths);
  writer.i32s(prefix + ".attention.head_count_kv", heads);
  if (config.layers_with_experts() > 0) writer.u32(prefix + ".expert_gating_func", 2);
}

/// 1 of the pairs that turn, and what leaves nothing of a frequency.
std::vector<float> rotation_divisors(const ModelConfig& config) {
  std::vector<float> divisors(config.head_dim / 2, 1e30f);
  std::fill_n(divisors.begin(), config.rope_scaling.turned_pairs, 1.0f);
  return divisors;
}

void add_config(const ModelConfig& config, GgufWriter& writer) {
  const std::string& prefix = config.architecture;
  const auto u32 = [&](const char* key, uint32_t value) { writer.u32(prefix + key, value); };
  u32(".block_count", config.layers);
  u32(".context_length", config.max_context);
  u32(".embedding_length", config.hidden);
  const Architecture& architecture = architecture_by_name(config.architecture);
  if (architecture.is_nemotron) {
    add_nemotron(config, writer);
  } else if (config.layer_ffn.empty()) {
    u32(".feed_forward_length", config.ffn);
  } else {
    writer.i32s(prefix + ".feed_forward_length",
                std::vector<int32_t>(config.layer_ffn.begin(), config.layer_ffn.end()));
  }
  u32(".attention.head_count", config.heads);
  if (architecture.is_nemotron) {
    // written above
  } else if (config.conv_taps != 0) {
    add_lfm2(config, writer);
  } else if (architecture.is_granite) {  // whose scans are the layers without
    std::vector<int32_t> heads;
    for (uint32_t n = 0; n < config.layers; ++n) {
      heads.push_back(config.is_recurrent(n) ? 0 : static_cast<int32_t>(config.kv_heads_of(n)));
    }
    writer.i32s(prefix + ".attention.head_count_kv", heads);
    add_granite(config, writer);
  } else if (config.layer_kv_heads.empty()) {
    u32(".attention.head_count_kv", config.kv_heads);
  } else {
    writer.i32s(prefix + ".attention.head_count_kv",
                std::vector<int32_t>(config.layer_kv_heads.begin(), config.layer_kv_heads.end()));
  }
  u32(".attention.key_length", config.head_dim);
  u32(".attention.value_length", config.has_latent_attention() ? config.latent.rank : config.head_dim);
  u32(".rope.dimension_count", config.turned());
  u32(".vocab_size", config.vocab);
  if (config.experts > 0) {
    u32(".expert_count", config.experts);
    u32(".expert_used_count", config.experts_used);
    u32(".expert_feed_forward_length", config.expert_ffn);
  }
  if (config.has_latent_attention()) add_latent(config, writer);
  if (architecture.has_dense_start) {
    add_routed(config, writer);
  } else if (config.shared_ffn > 0) {
    u32(".expert_shared_feed_forward_length", config.shared_ffn);
  }
  if (config.recurrent_layers() > 0 && config.conv_taps == 0) {
    const DeltaNetConfig& net = config.delta_net;
    if (architecture.is_hybrid) u32(".full_attention_interval", kUsualAttentionStep);
    u32(".ssm.group_count", net.key_heads);
    u32(".ssm.time_step_rank", net.value_heads);
    u32(".ssm.state_size", net.key_dim);
    u32(".ssm.inner_size", net.values());
    u32(".ssm.conv_kernel", net.taps);
  }
  if (architecture.is_gemma && !architecture.is_gemma4) add_gemma(config, writer);
  if (architecture.is_gemma4) add_gemma4(config, writer);
  if (architecture.name == "mistral3") add_mistral3(config, writer);
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

/// The name in a GGUF file: the canonical one with ".weight", but for biases, for numbers of recurrences, for post
/// norms and, where files name it so, for the norm behind mixers.
std::string gguf_name(const std::string& canonical, bool is_behind_mixer, bool is_lfm2) {
  for (const std::string_view ending : {".bias", ".scale", ".ssm_a", ".ssm_d"}) {
    if (canonical.ends_with(ending)) return canonical;
  }
  if (canonical == "output_norm" && is_lfm2) return "token_embd_norm.weight";
  const std::pair<std::string_view, std::string_view> norms[] = {
      {is_behind_mixer ? ".ffn_norm" : ".attn_post_norm", ".post_attention_norm"},
      {".ffn_post_norm", ".post_ffw_norm"}};
  for (const auto& [ours, theirs] : norms) {
    if (!canonical.ends_with(ours)) continue;
    return canonical.substr(0, canonical.size() - ours.size()) + std::string(theirs) + ".weight";
  }
  return canonical + ".weight";
}

/// The first `rows` of each head of a matrix of all of them, in a tensor of three dimensions.
void add_latent_heads(const TensorView& tensor, const ModelConfig& config, uint64_t rows, GgufWriter& writer) {
  const uint64_t head = tensor.bytes.size() / config.heads;
  std::vector<std::span<const std::byte>> parts;
  for (uint32_t h = 0; h < config.heads; ++h) {
    parts.push_back(tensor.bytes.subspan(h * head, rows * row_bytes(tensor)));
  }
  const std::array<uint64_t, 3> shape = {config.heads, rows, tensor.cols()};
  writer.tensor(tensor.name + ".weight", shape, tensor.type, std::move(parts));
}

void add_tensors(const ModelFile& model, const ModelConfig& config, GgufWriter& writer) {
  const Architecture& architecture = architecture_by_name(config.architecture);
  for (const RequiredTensor& wanted : required_tensors(config)) {
    if (without_expert(wanted.name) != wanted.name) continue;
    const TensorView& tensor = model.require(wanted.name, wanted.rows, wanted.cols);
    if (const bool is_of_keys = wanted.name.ends_with(".attn_k_b"); is_of_keys || wanted.name.ends_with(".attn_v_b")) {
      add_latent_heads(tensor, config, is_of_keys ? config.latent.rank : config.latent.value_dim, writer);
      continue;
    }
    writer.tensor(gguf_name(wanted.name, architecture.is_hybrid || architecture.is_glm4, architecture.is_lfm2),
                  std::span(tensor.shape).first(tensor.rank), tensor.type, {tensor.bytes});
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
  std::vector<float> divisors;
  if (shape.config.rope_scaling.kind == RopeScaling::Kind::proportional) {
    divisors = rotation_divisors(shape.config);
    const std::array<uint64_t, 1> count = {divisors.size()};
    writer.tensor("rope_freqs.weight", count, TensorType::f32, {std::as_bytes(std::span(divisors))});
  }
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
