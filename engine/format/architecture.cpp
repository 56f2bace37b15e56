#include "engine/format/architecture.h"

#include <array>
#include <functional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"

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

/// As dense, with post norms, gates through gelu, and in layers with a window a rotation of their own: Gemma 2 and 3.
LayerSpec gemma_layer(const ModelConfig& config, uint32_t n) {
  LayerSpec spec = dense_layer(config, n);
  spec.gelu = true;
  spec.post_norms = config.has_post_norms;
  spec.local_rope = !config.turns_locally.empty() && config.turns_locally[n];
  return spec;
}

constexpr std::array architectures = std::to_array<Architecture>({
    {.name = "llama",
     .hugging_face = "LlamaForCausalLM",
     .models = "Llama 2 and 3, Mistral, SmolLM2",
     .gguf_rope_layout = RopeLayout::interleaved,
     .gguf_window = Windows::in_all_layers,
     .layer = dense_layer},
    {.name = "llama",
     .hugging_face = "MistralForCausalLM",
     .models = "Mistral",
     .gguf_rope_layout = RopeLayout::interleaved,
     .window = Windows::in_all_layers,
     .gguf_window = Windows::in_all_layers,
     .layer = dense_layer},
    {.name = "llama",
     .hugging_face = "Mistral3ForConditionalGeneration",
     .models = "the text part of Mistral Small 3.1 and later",
     .gguf_rope_layout = RopeLayout::interleaved,
     .window = Windows::in_all_layers,
     .gguf_window = Windows::in_all_layers,
     .layer = dense_layer},
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
    {.name = "gemma3",
     .hugging_face = "Gemma3ForCausalLM",
     .models = "Gemma 3",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .ties_head = true,
     .is_gemma = true,
     .window = Windows::in_all_layers,
     .layer = gemma_layer},
    {.name = "gemma3",
     .hugging_face = "Gemma3ForConditionalGeneration",
     .models = "the text part of Gemma 3",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .ties_head = true,
     .is_gemma = true,
     .window = Windows::in_all_layers,
     .layer = gemma_layer},
    {.name = "gemma2",
     .hugging_face = "Gemma2ForCausalLM",
     .models = "Gemma 2",
     .gguf_rope_layout = RopeLayout::half,
     .ties_head = true,
     .is_gemma = true,
     .window = Windows::in_all_layers,
     .layer = gemma_layer},
    {.name = "qwen35",
     .hugging_face = "Qwen3_5ForCausalLM",
     .models = "Qwen3.5 without experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .is_hybrid = true,
     .layer = hybrid_layer},
    {.name = "qwen35",
     .hugging_face = "Qwen3_5ForConditionalGeneration",
     .models = "the text part of Qwen3.5 without experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .is_hybrid = true,
     .layer = hybrid_layer},
    {.name = "qwen35moe",
     .hugging_face = "Qwen3_5MoeForCausalLM",
     .models = "Qwen3.5 with experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .has_experts = true,
     .is_hybrid = true,
     .layer = hybrid_layer},
    {.name = "qwen35moe",
     .hugging_face = "Qwen3_5MoeForConditionalGeneration",
     .models = "the text part of Qwen3.5 with experts",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .has_experts = true,
     .is_hybrid = true,
     .layer = hybrid_layer},
    {.name = "qwen3next",
     .hugging_face = "Qwen3NextForCausalLM",
     .models = "Qwen3-Next and Qwen3-Coder-Next",
     .gguf_rope_layout = RopeLayout::half,
     .has_qk_norm = true,
     .has_experts = true,
     .is_hybrid = true,
     .layer = hybrid_layer},
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
  throw bad_input("The model's architecture '" + printable(wanted) +
                  "' is not supported; supported are: " + all_names<Field>() + ". Get a model of one of these.");
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
  add("attn_k", kv, c.hidden);
  add("attn_v", kv, c.hidden);
  add("attn_output", c.hidden, q);
  if (spec.qkv_bias) {
    add("attn_q.bias", 1, q);
    add("attn_k.bias", 1, kv);
    add("attn_v.bias", 1, kv);
  }
  if (spec.output_bias) add("attn_output.bias", 1, c.hidden);
  if (spec.sinks) add("attn_sinks", 1, c.heads_of(n));
  if (spec.qk_norm) {
    add("attn_q_norm", 1, c.head_dim);
    add("attn_k_norm", 1, c.head_dim);
  }
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

}  // namespace

void append_layer_tensors(const ModelConfig& c, std::span<const LayerSpec> layers,
                          std::vector<RequiredTensor>& result) {
  for (uint32_t layer = 0; layer < c.layers; ++layer) {
    const AddTensor add = [&](std::string_view name, uint64_t rows, uint64_t cols) {
      result.push_back({"blk." + std::to_string(layer) + "." + std::string(name), rows, cols});
    };
    add("attn_norm", 1, c.hidden);
    if (layers[layer].mixer == Mixer::attention) add_attention_tensors(c, layer, layers[layer], add);
    if (layers[layer].mixer == Mixer::gated_delta_net) add_recurrence_tensors(c, add);
    add("ffn_norm", 1, c.hidden);
    if (layers[layer].post_norms) {
      add("attn_post_norm", 1, c.hidden);
      add("ffn_post_norm", 1, c.hidden);
    }
    if (layers[layer].feed_forward == FeedForward::mixture_of_experts) {
      add("ffn_gate_inp", c.experts, c.hidden);
      for (uint32_t expert = 0; expert < c.experts; ++expert) {
        const std::string number = "." + std::to_string(expert);
        add("ffn_gate" + number, c.expert_ffn, c.hidden);
        add("ffn_up" + number, c.expert_ffn, c.hidden);
        add("ffn_down" + number, c.hidden, c.expert_ffn);
      }
      if (layers[layer].expert_bias) {
        add("ffn_gate_inp.bias", 1, c.experts);
        add("ffn_gate_exps.bias", c.experts, c.expert_ffn);
        add("ffn_up_exps.bias", c.experts, c.expert_ffn);
        add("ffn_down_exps.bias", c.experts, c.hidden);
      }
      if (!layers[layer].shared_expert) continue;
      add("ffn_gate_inp_shexp", 1, c.hidden);
      add("ffn_gate_shexp", c.shared_ffn, c.hidden);
      add("ffn_up_shexp", c.shared_ffn, c.hidden);
      add("ffn_down_shexp", c.hidden, c.shared_ffn);
      continue;
    }
    add("ffn_gate", c.ffn_of(layer), c.hidden);
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
  return name == "dflash" || name.ends_with("dflash-draft");
}

bool is_drafter_class(std::string_view class_name) {
  return class_name.ends_with("DraftModel") || class_name.ends_with("Speculator");
}

}  // namespace canopy
