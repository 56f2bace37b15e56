#include "engine/format/architecture.h"

#include <array>
#include <functional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/other_models.h"

namespace canopy {
namespace {

/// The same in all layers: Llama (Touvron et al., "LLaMA", 2023; grouped-query attention as in Llama 2, frequency
/// scaling as in Llama 3.1), Mistral, which is that under another name, with biases of q, k and v Qwen2 and Qwen2.5
/// (Qwen Team, "Qwen2 Technical Report", 2024), with norms of the heads the dense Qwen3 ("Qwen3 Technical Report",
/// 2025), without positions in some layers SmolLM3 (Yang et al., "Rope to Nope and Back Again", 2025), and with
/// matrices that lie in one Phi-3 (Abdin et al., "Phi-3 Technical Report", 2024).
LayerSpec dense_layer(const ModelConfig& config, uint32_t n) {
  return {.qkv_bias = config.has_qkv_bias,
          .output_bias = config.has_output_bias,
          .sinks = config.has_sinks,
          .qk_norm = config.has_qk_norm,
          .rope = config.rope_layout,
          .rotates = config.rotates.empty() || config.rotates[n],
          .window = config.windows.empty() ? 0 : config.windows[n]};
}

/// As dense, with experts in the place of the feed-forward in all layers or some: Qwen3-MoE ("Qwen3 Technical Report"),
/// and with biases everywhere and sinks of attention gpt-oss (OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025).
LayerSpec expert_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = dense_layer(config, n);
  if (config.layer_has_experts(n)) spec.feed_forward = FeedForward::mixture_of_experts;
  spec.expert_bias = config.layer_has_experts(n) && config.has_expert_bias;
  return spec;
}

/// Attention with a gate in some layers, recurrences in the others: Qwen3.5. Experts as above, with one that every row
/// goes through, in its larger sizes and in Qwen3-Next, which is the same with its matrices in another order.
LayerSpec hybrid_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = dense_layer(config, n);
  if (config.is_recurrent(n)) spec = {.mixer = Mixer::gated_delta_net};
  spec.output_gate = !config.is_recurrent(n) && config.has_output_gate;
  if (config.layer_has_experts(n)) {
    spec.feed_forward = FeedForward::mixture_of_experts;
    spec.shared_expert = config.shared_ffn != 0;
  }
  return spec;
}

/// Experts, one of which every row goes through, in all layers but the first: GLM-4.5 and later (GLM-4.5 Team,
/// "GLM-4.5: Agentic, Reasoning, and Coding (ARC) Foundation Models", 2025).
LayerSpec routed_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = expert_layer(config, n);
  spec.shared_expert = config.layer_has_experts(n) && config.shared_ffn != 0;
  spec.shared_gate = config.gates_shared_expert;
  spec.choice_bias = config.layer_has_experts(n) && config.has_choice_bias;
  return spec;
}

/// The same behind attention to latents: DeepSeek 2 and 3 and GLM-4.7-Flash.
LayerSpec latent_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = routed_layer(config, n);
  spec.mixer = Mixer::latent_attention;
  return spec;
}

/// As dense, with short convolutions in the place of attention in most layers: LFM2 (Liquid AI, "LFM2 Technical
/// Report", 2025).
LayerSpec short_convolution_layer(const ModelConfig& config, uint32_t n) {
  if (config.is_recurrent(n)) return {.mixer = Mixer::short_convolution};
  return dense_layer(config, n);
}

/// As dense, with post norms, gates through gelu, and in layers with a window a rotation of their own: Gemma 2 and 3.
LayerSpec gemma_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = dense_layer(config, n);
  spec.gelu = true;
  spec.post_norms = config.has_post_norms;
  spec.local_rope = config.turns_locally_in(n);
  return spec;
}

/// Heads of their own size in layers with a window, norms of values, which some layers take from their keys, and a
/// number that each layer's output is multiplied by: Gemma 4.
LayerSpec gemma4_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = gemma_layer(config, n);
  spec.v_norm = config.has_v_norm;
  spec.values_of_keys = config.has_values_of_keys(n);
  spec.own_kv = config.has_own_kv(n);
  spec.layer_input = config.layer_inputs != 0;
  if (config.layer_has_experts(n)) spec.feed_forward = FeedForward::both;
  spec.layer_scale = config.has_layer_scales;
  return spec;
}

/// Scans in most layers and attention, mostly without positions, in the others; experts beside one that every row goes
/// through in the place of the feed-forward in the larger sizes: Granite 4 (IBM, 2025). As dense, Granite 3.
LayerSpec granite_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = expert_layer(config, n);
  if (config.is_recurrent(n)) spec.mixer = Mixer::scan;
  spec.shared_expert = config.layer_has_experts(n) && config.shared_ffn != 0;
  spec.shared_gate = config.gates_shared_expert;
  return spec;
}

/// A scan, attention without positions, a feed-forward without gates or experts of that kind in each layer: Nemotron-H
/// (NVIDIA, "Nemotron-H", 2025) and Nemotron 3.
LayerSpec nemotron_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = granite_layer(config, n);
  if (!config.layer_has_mixer(n)) spec.mixer = Mixer::none;
  if (!config.layer_has_feed_forward(n)) spec.feed_forward = FeedForward::none;
  spec.square_relu = config.layer_has_feed_forward(n);
  spec.choice_bias = config.layer_has_experts(n) && config.has_choice_bias;
  return spec;
}

/// The same layers under another class of config.json.
constexpr Architecture also_called(Architecture known, std::string_view class_name, std::string_view models) {
  known.hugging_face = class_name;
  known.models = models;
  return known;
}

constexpr Architecture mistral_row = {.name = "llama",
                                      .hugging_face = "MistralForCausalLM",
                                      .models = "Mistral",
                                      .gguf_rope_layout = RopeLayout::interleaved,
                                      .window = Windows::in_all_layers,
                                      .gguf_window = Windows::in_all_layers,
                                      .layer = dense_layer};
// As Mistral, with queries that may grow with their position (Mistral AI, "Ministral 3", 2025).
constexpr Architecture mistral3_row = [] {
  Architecture row = also_called(mistral_row, "Ministral3ForCausalLM", "Ministral 3, Mistral Small 3.1 and later");
  row.name = "mistral3";
  return row;
}();
constexpr Architecture gemma3_row = {.name = "gemma3",
                                     .hugging_face = "Gemma3ForCausalLM",
                                     .models = "Gemma 3",
                                     .gguf_rope_layout = RopeLayout::half,
                                     .has_qk_norm = true,
                                     .ties_head = true,
                                     .is_gemma = true,
                                     .window = Windows::in_all_layers,
                                     .layer = gemma_layer};
constexpr Architecture gemma4_row = {.name = "gemma4",
                                     .hugging_face = "Gemma4ForCausalLM",
                                     .models = "Gemma 4",
                                     .gguf_rope_layout = RopeLayout::half,
                                     .has_qk_norm = true,
                                     .ties_head = true,
                                     .is_gemma = true,
                                     .is_gemma4 = true,
                                     .window = Windows::in_all_layers,
                                     .layer = gemma4_layer};
constexpr Architecture deepseek2_row = {.name = "deepseek2",
                                        .hugging_face = "DeepseekV2ForCausalLM",
                                        .models = "DeepSeek-V2-Lite, DeepSeek-V3 and R1, GLM-4.7-Flash",
                                        .gguf_rope_layout = RopeLayout::interleaved,
                                        .has_experts = true,
                                        .is_latent = true,
                                        .has_dense_start = true,
                                        .layer = latent_layer};
constexpr Architecture deepseek3_row = [] {
  Architecture row = also_called(deepseek2_row, "DeepseekV3ForCausalLM", "DeepSeek-V3 and R1");
  row.router_has_sigmoid = true;
  return row;
}();
constexpr Architecture nemotron_row = {.name = "nemotron_h_moe",
                                       .hugging_face = "NemotronHForCausalLM",
                                       .models = "Nemotron 3 Nano, Nemotron Nano 2",
                                       .gguf_rope_layout = RopeLayout::half,
                                       .has_experts = true,
                                       .is_nemotron = true,
                                       .layer = nemotron_layer};
constexpr Architecture qwen35_row = {.name = "qwen35",
                                     .hugging_face = "Qwen3_5ForCausalLM",
                                     .models = "Qwen3.5 without experts",
                                     .gguf_rope_layout = RopeLayout::half,
                                     .has_qk_norm = true,
                                     .is_hybrid = true,
                                     .layer = hybrid_layer};
constexpr Architecture qwen35_expert_row = {.name = "qwen35moe",
                                            .hugging_face = "Qwen3_5MoeForCausalLM",
                                            .models = "Qwen3.5 with experts",
                                            .gguf_rope_layout = RopeLayout::half,
                                            .has_qk_norm = true,
                                            .has_experts = true,
                                            .is_hybrid = true,
                                            .layer = hybrid_layer};

constexpr std::array architectures = std::to_array<Architecture>({
    {.name = "llama",
     .hugging_face = "LlamaForCausalLM",
     .models = "Llama 2 and 3, Mistral, SmolLM2",
     .gguf_rope_layout = RopeLayout::interleaved,
     .gguf_window = Windows::in_all_layers,
     .layer = dense_layer},
    mistral_row,
    mistral3_row,
    also_called(mistral3_row, "Mistral3ForConditionalGeneration",
                "the text part of Ministral 3, Mistral Small 3.1 and later"),
    {.name = "phi3",
     .hugging_face = "Phi3ForCausalLM",
     .models = "Phi-3, Phi-3.5, Phi-4 and Phi-4-mini",
     .gguf_rope_layout = RopeLayout::half,
     .has_fused_tensors = true,
     .window = Windows::in_all_layers,
     .gguf_window = Windows::in_all_layers,
     .layer = dense_layer},
    {.name = "qwen2",
     .hugging_face = "Qwen2ForCausalLM",
     .models = "Qwen2 and Qwen2.5",
     .gguf_rope_layout = RopeLayout::half,
     .has_qkv_bias = true,
     .layer = dense_layer},
    {.name = "qwen3",
     .hugging_face = "Qwen3ForCausalLM",
     .models = "Qwen3 without experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .layer = dense_layer},
    // Of text all three positions of a token are the same, and turn its heads as one does.
    {.name = "qwen3vl",
     .hugging_face = "Qwen3VLForConditionalGeneration",
     .models = "the text part of Qwen3-VL without experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .layer = dense_layer},
    {.name = "qwen3vlmoe",
     .hugging_face = "Qwen3VLMoeForConditionalGeneration",
     .models = "the text part of Qwen3-VL with experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .has_experts = true,
     .has_transposed_experts = true,
     .layer = expert_layer},
    {.name = "qwen3moe",
     .hugging_face = "Qwen3MoeForCausalLM",
     .models = "Qwen3 and Qwen3-Coder with experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .has_experts = true,
     .layer = expert_layer},
    {.name = "gpt-oss",
     .hugging_face = "GptOssForCausalLM",
     .models = "gpt-oss",
     .gguf_rope_layout = RopeLayout::half,
     .has_qkv_bias = true,
     .has_output_bias = true,
     .has_experts = true,
     .is_gpt_oss = true,
     .rope_theta = 150000,
     .window = Windows::in_even_layers,
     .gguf_window = Windows::in_even_layers,
     .layer = expert_layer},
    gemma3_row,
    also_called(gemma3_row, "Gemma3ForConditionalGeneration", "the text part of Gemma 3"),
    {.name = "gemma2",
     .hugging_face = "Gemma2ForCausalLM",
     .models = "Gemma 2",
     .gguf_rope_layout = RopeLayout::half,
     .ties_head = true,
     .is_gemma = true,
     .window = Windows::in_all_layers,
     .layer = gemma_layer},
    gemma4_row,
    also_called(gemma4_row, "Gemma4ForConditionalGeneration", "the text part of Gemma 4"),
    also_called(gemma4_row, "Gemma4UnifiedForConditionalGeneration", "the text part of Gemma 4 12B"),
    qwen35_row,
    also_called(qwen35_row, "Qwen3_5ForConditionalGeneration", "the text part of Qwen3.5 without experts"),
    qwen35_expert_row,
    also_called(qwen35_expert_row, "Qwen3_5MoeForConditionalGeneration", "the text part of Qwen3.5 with experts"),
    {.name = "qwen3next",
     .hugging_face = "Qwen3NextForCausalLM",
     .models = "Qwen3-Next and Qwen3-Coder-Next",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .has_experts = true,
     .is_hybrid = true,
     .layer = hybrid_layer},
    {.name = "granite",
     .hugging_face = "GraniteForCausalLM",
     .models = "Granite 3, Granite 4 without scans",
     .gguf_rope_layout = RopeLayout::interleaved,
     .is_granite = true,
     .layer = granite_layer},
    {.name = "granitehybrid",
     .hugging_face = "GraniteMoeHybridForCausalLM",
     .models = "Granite 4",
     .gguf_rope_layout = RopeLayout::interleaved,
     .has_experts = true,
     .is_granite = true,
     .layer = granite_layer},
    nemotron_row,
    [] {
      Architecture dense = nemotron_row;  // as GGUF calls those without experts
      dense.name = "nemotron_h";
      dense.models = "Nemotron Nano 2";
      return dense;
    }(),
    deepseek2_row,
    deepseek3_row,
    also_called(deepseek3_row, "Glm4MoeLiteForCausalLM", "GLM-4.7-Flash"),
    {.name = "glm4moe",
     .hugging_face = "Glm4MoeForCausalLM",
     .models = "GLM-4.5, GLM-4.5-Air, GLM-4.6 and GLM-4.7",
     .gguf_rope_layout = RopeLayout::half,
     .has_experts = true,
     .is_glm4 = true,
     .has_dense_start = true,
     .router_has_sigmoid = true,
     .layer = routed_layer},
    {.name = "lfm2",
     .hugging_face = "Lfm2ForCausalLM",
     .models = "LFM2 and LFM2.5 without experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .ties_head = true,
     .is_lfm2 = true,
     .rope_theta = 1000000,
     .layer = short_convolution_layer},
    {.name = "smollm3",
     .hugging_face = "SmolLM3ForCausalLM",
     .models = "SmolLM3",
     .gguf_rope_layout = RopeLayout::interleaved,
     .ties_head = true,
     .unrotated_step = 4,
     .rope_theta = 2000000,
     .window = Windows::in_unrotated_layers,
     .layer = dense_layer},
});

/// "llama (Llama 2 and 3, Mistral, SmolLM2), ..." with the names of that field.
template <std::string_view Architecture::*Field>
std::string all_names() {
  std::string names;
  std::string_view last;
  for (const Architecture& architecture : architectures) {
    if (architecture.*Field == last) continue;  // another class of the same name
    last = architecture.*Field;
    names += (names.empty() ? "" : ", ") + std::string(last) + " (" + std::string(architecture.models) + ")";
  }
  return names;
}

template <std::string_view Architecture::*Field>
const Architecture& find(std::string_view wanted) {
  if (is_drafter_architecture(wanted) || is_drafter_class(wanted)) {
    throw bad_input("This is a drafter ('" + printable(wanted) +
                    "'), which cannot write text by itself; open it as the drafter of the model it was made for.");
  }
  for (const Architecture& architecture : architectures) {
    if (architecture.*Field == wanted) return architecture;
  }
  const OtherModel* const other = find_other_model(wanted);
  const std::string what = "The model's architecture '" + printable(wanted) + "'" +
                           (other != nullptr ? " (" + std::string(other->models) + ")" : "") + " is not supported";
  throw bad_input(what +
                  (other != nullptr ? ". " + std::string(advice_on(other->kind)) + " Supported" : "; supported") +
                  " are: " + all_names<Field>() + "." + (other != nullptr ? "" : " Get a model of one of these."));
}

}  // namespace

const Architecture& architecture_by_name(std::string_view name) {
  return find<&Architecture::name>(name);
}

const Architecture& architecture_by_class(std::string_view class_name) {
  return find<&Architecture::hugging_face>(class_name);
}

std::vector<bool> layers_that_rotate(uint32_t layers, uint32_t step) {
  std::vector<bool> rotates;
  for (uint32_t n = 0; step != 0 && n < layers; ++n) rotates.push_back((n + 1) % step != 0);
  return rotates;
}

std::string what_runs() {
  return "these architectures run here: " + all_names<&Architecture::name>() + ".";
}

std::vector<RequiredTensor> required_tensors(const ModelConfig& c) {
  std::vector<RequiredTensor> result = {{"token_embd", c.vocab, c.hidden}, {"output_norm", 1, c.hidden}};
  if (!c.tied_head) result.push_back({"output", c.vocab, c.hidden});
  if (c.layer_inputs != 0) {
    const uint64_t all = uint64_t{c.layers} * c.layer_inputs;
    result.push_back({"per_layer_token_embd", c.vocab, all});
    result.push_back({"per_layer_model_proj", all, c.hidden});
    result.push_back({"per_layer_proj_norm", 1, c.layer_inputs});
  }
  append_layer_tensors(c, layer_specs(c), result);
  return result;
}

std::vector<LayerSpec> layer_specs(const ModelConfig& config) {
  const Architecture& architecture = architecture_by_name(config.architecture);
  std::vector<LayerSpec> specs;
  for (uint32_t n = 0; n < config.layers; ++n) specs.push_back(architecture.layer(config, n));
  return specs;
}

namespace {

using AddTensor = std::function<void(std::string_view name, uint64_t rows, uint64_t cols)>;

void add_attention_tensors(const ModelConfig& c, uint32_t n, const LayerSpec& spec, const AddTensor& add) {
  const uint64_t q = c.q_width_of(n), kv = c.kv_width_of(n);
  add("attn_q", q * (spec.output_gate ? 2 : 1), c.hidden);
  if (spec.own_kv) add("attn_k", kv, c.hidden);
  if (spec.own_kv && !spec.values_of_keys) add("attn_v", kv, c.hidden);
  add("attn_output", c.hidden, q);
  if (spec.qkv_bias) {
    add("attn_q.bias", 1, q);
    add("attn_k.bias", 1, kv);
    add("attn_v.bias", 1, kv);
  }
  if (spec.output_bias) add("attn_output.bias", 1, c.hidden);
  if (spec.sinks) add("attn_sinks", 1, c.heads_of(n));
  if (spec.qk_norm) {
    add("attn_q_norm", 1, c.head_dim_of(n));
    if (spec.own_kv) add("attn_k_norm", 1, c.head_dim_of(n));
  }
}

void add_latent_tensors(const ModelConfig& c, uint32_t n, const AddTensor& add) {
  const LatentAttention& latent = c.latent;
  const uint64_t heads = c.heads_of(n), queries = heads * (uint64_t{latent.key_dim} + c.rotary_dim);
  if (latent.query_rank != 0) {
    add("attn_q_a", latent.query_rank, c.hidden);
    add("attn_q_a_norm", 1, latent.query_rank);
    add("attn_q_b", queries, latent.query_rank);
  } else {
    add("attn_q", queries, c.hidden);
  }
  add("attn_kv_a_mqa", c.head_dim, c.hidden);
  add("attn_kv_a_norm", 1, latent.rank);
  add("attn_k_b", heads * c.head_dim, latent.key_dim);
  add("attn_v_b", heads * latent.value_dim, latent.rank);
  add("attn_output", c.hidden, heads * latent.value_dim);
}

void add_convolution_tensors(const ModelConfig& c, const AddTensor& add) {
  add("shortconv.in_proj", 3 * uint64_t{c.hidden}, c.hidden);
  add("shortconv.conv", c.hidden, c.conv_taps);
  add("shortconv.out_proj", c.hidden, c.hidden);
}

void add_recurrence_tensors(const ModelConfig& c, const AddTensor& add) {
  const DeltaNetConfig& net = c.delta_net;
  if (net.has_joined_inputs) {
    add("ssm_in", net.channels() + net.values(), c.hidden);
  } else {
    add("attn_qkv", net.channels(), c.hidden);
    add("attn_gate", net.values(), c.hidden);
  }
  if (net.has_joined_rates) {
    add("ssm_ba", 2 * net.value_heads, c.hidden);
  } else {
    add("ssm_beta", net.value_heads, c.hidden);
    add("ssm_alpha", net.value_heads, c.hidden);
  }
  add("ssm_conv1d", net.channels(), net.taps);
  add("ssm_dt.bias", 1, net.value_heads);
  add("ssm_a", 1, net.value_heads);
  add("ssm_norm", 1, net.value_dim);
  add("ssm_out", c.hidden, net.values());
}

void add_scan_tensors(const ModelConfig& c, const AddTensor& add) {
  const DeltaNetConfig& net = c.delta_net;
  add("ssm_in", net.values() + net.channels() + net.value_heads, c.hidden);
  add("ssm_conv1d", net.channels(), net.taps);
  if (net.has_conv_bias) add("ssm_conv1d.bias", 1, net.channels());
  add("ssm_dt.bias", 1, net.value_heads);
  add("ssm_a", 1, net.value_heads);
  add("ssm_d", 1, net.value_heads);
  add("ssm_norm", 1, net.values());
  add("ssm_out", c.hidden, net.values());
}

}  // namespace

void append_layer_tensors(const ModelConfig& c, std::span<const LayerSpec> layers,
                          std::vector<RequiredTensor>& result) {
  for (uint32_t layer = 0; layer < c.layers; ++layer) {
    const AddTensor add = [&](std::string_view name, uint64_t rows, uint64_t cols) {
      result.push_back({"blk." + std::to_string(layer) + "." + std::string(name), rows, cols});
    };
    add("attn_norm", 1, c.hidden);
    if (layers[layer].mixer == Mixer::attention) add_attention_tensors(c, layer, layers[layer], add);
    if (layers[layer].mixer == Mixer::latent_attention) add_latent_tensors(c, layer, add);
    if (layers[layer].mixer == Mixer::gated_delta_net) add_recurrence_tensors(c, add);
    if (layers[layer].mixer == Mixer::scan) add_scan_tensors(c, add);
    if (layers[layer].mixer == Mixer::short_convolution) add_convolution_tensors(c, add);
    const bool has_feed_forward = layers[layer].feed_forward != FeedForward::none;
    if (has_feed_forward && layers[layer].mixer != Mixer::none) add("ffn_norm", 1, c.hidden);
    if (layers[layer].post_norms) {
      add("attn_post_norm", 1, c.hidden);
      add("ffn_post_norm", 1, c.hidden);
    }
    if (layers[layer].layer_input) {
      add("inp_gate", c.layer_inputs, c.hidden);
      add("proj", c.hidden, c.layer_inputs);
      add("post_norm", 1, c.hidden);
    }
    if (layers[layer].layer_scale) add("layer_output_scale", 1, 1);
    if (layers[layer].feed_forward == FeedForward::both) {
      add("ffn_gate_inp.scale", 1, c.hidden);
      add("ffn_down_exps.scale", 1, c.experts);
      for (const char* norm : {"pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"}) add(norm, 1, c.hidden);
    }
    if (!has_feed_forward) continue;
    const bool has_gates = !layers[layer].square_relu;
    if (layers[layer].feed_forward != FeedForward::swiglu) {
      add("ffn_gate_inp", c.experts, c.hidden);
      for (uint32_t expert = 0; expert < c.experts; ++expert) {
        const std::string number = "." + std::to_string(expert);
        if (has_gates) add("ffn_gate" + number, c.expert_ffn, c.hidden);
        add("ffn_up" + number, c.expert_ffn, c.hidden);
        add("ffn_down" + number, c.hidden, c.expert_ffn);
      }
      if (layers[layer].expert_bias) {
        add("ffn_gate_inp.bias", 1, c.experts);
        add("ffn_gate_exps.bias", c.experts, c.expert_ffn);
        add("ffn_up_exps.bias", c.experts, c.expert_ffn);
        add("ffn_down_exps.bias", c.experts, c.hidden);
      }
      if (layers[layer].choice_bias) add("exp_probs_b.bias", 1, c.experts);
      if (layers[layer].shared_expert) {
        if (layers[layer].shared_gate) add("ffn_gate_inp_shexp", 1, c.hidden);
        if (has_gates) add("ffn_gate_shexp", c.shared_ffn, c.hidden);
        add("ffn_up_shexp", c.shared_ffn, c.hidden);
        add("ffn_down_shexp", c.hidden, c.shared_ffn);
      }
      if (layers[layer].feed_forward == FeedForward::mixture_of_experts) continue;
    }
    if (has_gates) add("ffn_gate", c.ffn_of(layer), c.hidden);
    add("ffn_up", c.ffn_of(layer), c.hidden);
    add("ffn_down", c.hidden, c.ffn_of(layer));
  }
}

uint32_t checked_layer_step(uint32_t step, const std::string& field) {
  if (step != 0) return step;
  throw bad_input("The " + field + " is 0; the kinds of layers follow from it: 1 or more is allowed.");
}

std::vector<bool> recurrent_layers(uint32_t layers, uint32_t step) {
  std::vector<bool> recurrent;
  for (uint32_t n = 0; n < layers; ++n) recurrent.push_back((n + 1) % step != 0);
  return recurrent;
}

bool is_drafter_architecture(std::string_view name) {
  return name == "dflash" || name == "eagle3" || name == "gemma4-assistant" || name.ends_with("dflash-draft");
}

bool is_drafter_class(std::string_view class_name) {
  return class_name.ends_with("DraftModel") || class_name.ends_with("Speculator") ||
         class_name.ends_with("DSparkModel") || class_name.find("Eagle3") != std::string_view::npos ||
         class_name == "Gemma4AssistantForCausalLM";
}

}  // namespace canopy
