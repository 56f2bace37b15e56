#include "engine/format/tensor_names.h"

#include <array>
#include <optional>
#include <span>
#include <utility>

namespace canopy {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

// Hugging Face -> canonical, without ".weight".
constexpr std::array model_names = std::to_array<NamePair>({
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
});

// The same inside "model.layers.N." and "blk.N.".
constexpr std::array layer_names = std::to_array<NamePair>({
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.in_proj_qkvz", "ssm_in"},
    {"linear_attn.in_proj_ba", "ssm_ba"},
    {"linear_attn.conv1d", "ssm_conv1d"},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
    {"post_attention_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "ffn_post_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.router", "ffn_gate_inp"},
});

// The same inside "mlp.experts.E.", with ".E" behind the canonical name.
constexpr std::array expert_names = std::to_array<NamePair>({
    {"gate_proj", "ffn_gate"},
    {"up_proj", "ffn_up"},
    {"down_proj", "ffn_down"},
});

// The same of tensors that are no ".weight".
constexpr std::array layer_vectors = std::to_array<NamePair>({
    {"linear_attn.A_log", "ssm_a"},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"self_attn.sinks", "attn_sinks"},
    {"mlp.experts.gate_up_proj", "ffn_gate_up_exps"},
    {"mlp.experts.gate_up_proj_blocks", "ffn_gate_up_exps.blocks"},
    {"mlp.experts.gate_up_proj_scales", "ffn_gate_up_exps.scales"},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_up_exps.bias"},
    {"mlp.experts.down_proj", "ffn_down_exps"},
    {"mlp.experts.down_proj_blocks", "ffn_down_exps.blocks"},
    {"mlp.experts.down_proj_scales", "ffn_down_exps.scales"},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
});

constexpr std::string_view weight_ending = ".weight", bias_ending = ".bias";

/// "model.layers.3.REST" with one of the names -> "blk.3.OURS".
std::optional<std::string> name_in_layer(std::string_view name, std::span<const NamePair> names) {
  constexpr std::string_view prefix = "model.layers.";
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = name.substr(prefix.size());
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  for (const auto& [theirs, ours] : names) {
    if (rest.substr(dot + 1) == theirs) return "blk." + std::string(rest.substr(0, dot + 1)) + std::string(ours);
  }
  return std::nullopt;
}

/// "model.layers.3.mlp.experts.7.up_proj" -> "blk.3.ffn_up.7"
std::optional<std::string> name_of_expert(std::string_view name) {
  constexpr std::string_view prefix = "model.layers.", middle = "mlp.experts.";
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view in_layers = name.substr(prefix.size());
  const size_t dot = in_layers.find('.');
  if (dot == std::string_view::npos || !in_layers.substr(dot + 1).starts_with(middle)) return std::nullopt;
  const std::string_view rest = in_layers.substr(dot + 1 + middle.size());
  const size_t end = rest.find('.');
  if (end == std::string_view::npos) return std::nullopt;
  for (const auto& [theirs, ours] : expert_names) {
    if (rest.substr(end + 1) != theirs) continue;
    return "blk." + std::string(in_layers.substr(0, dot + 1)) + std::string(ours) + "." +
           std::string(rest.substr(0, end));
  }
  return std::nullopt;
}

std::string canonical_vector(std::string_view name) {
  return name_in_layer(name, layer_vectors).value_or(std::string(name));
}

}  // namespace

std::string_view without_expert(std::string_view canonical) {
  const size_t dot = canonical.rfind('.');
  const bool is_number = dot != std::string_view::npos && dot + 1 < canonical.size() &&
                         canonical.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
  return is_number ? canonical.substr(0, dot) : canonical;
}

std::string canonical_name_from_gguf(std::string_view name, bool has_post_norms) {
  if (name.size() > weight_ending.size() && name.ends_with(weight_ending)) name.remove_suffix(weight_ending.size());
  const NamePair norms[] = {{".post_attention_norm", has_post_norms ? ".attn_post_norm" : ".ffn_norm"},  // in hybrids
                            {".post_ffw_norm", ".ffn_post_norm"}};
  for (const auto& [theirs, ours] : norms) {
    if (name.ends_with(theirs)) return std::string(name.substr(0, name.size() - theirs.size())) + std::string(ours);
  }
  return std::string(name);
}

std::string canonical_name_from_hugging_face(std::string_view name, bool has_post_norms) {
  constexpr std::string_view text_part = "model.language_model.";  // of a model that sees pictures too
  if (name.starts_with(text_part)) {
    return canonical_name_from_hugging_face("model." + std::string(name.substr(text_part.size())), has_post_norms);
  }
  constexpr std::string_view older_text_part = "language_model.";
  if (name.starts_with(older_text_part)) {
    return canonical_name_from_hugging_face(name.substr(older_text_part.size()), has_post_norms);
  }
  if (name.ends_with(bias_ending)) {  // as GGUF has it: named like the weight
    const std::string_view stem = name.substr(0, name.size() - bias_ending.size());
    const std::string weight = std::string(stem) + std::string(weight_ending);
    const std::string canonical = canonical_name_from_hugging_face(weight, has_post_norms);
    return (canonical == weight ? std::string(stem) : canonical) + std::string(bias_ending);
  }
  if (!name.ends_with(weight_ending)) return canonical_vector(name);
  const std::string_view stem = name.substr(0, name.size() - weight_ending.size());
  for (const auto& [theirs, ours] : model_names) {
    if (stem == theirs) return std::string(ours);
  }
  if (has_post_norms) {
    static constexpr NamePair after_mixer[] = {{"post_attention_layernorm", "attn_post_norm"}};
    if (const std::optional<std::string> found = name_in_layer(stem, after_mixer)) return *found;
  }
  if (const std::optional<std::string> found = name_in_layer(stem, layer_names)) return *found;
  return name_of_expert(stem).value_or(std::string(name));
}

}  // namespace canopy
