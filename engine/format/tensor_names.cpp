#include "engine/format/tensor_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

// Hugging Face -> canonical, without ".weight".
constexpr std::array model_names = std::to_array<NamePair>({
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.embed_tokens_per_layer", "per_layer_token_embd"},
    {"model.per_layer_model_projection", "per_layer_model_proj"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
});

// The same inside "model.layers.N." and "blk.N.".
constexpr std::array layer_names = std::to_array<NamePair>({
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b"},
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
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"mlp.router", "ffn_gate_inp"},
    {"router.proj", "ffn_gate_inp"},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
    {"per_layer_input_gate", "inp_gate"},
    {"per_layer_projection", "proj"},
    {"post_per_layer_input_norm", "post_norm"},
});

// Those that LFM2 has in the place of some of these.
constexpr std::array lfm2_names = std::to_array<NamePair>({
    {"operator_norm", "attn_norm"},
    {"self_attn.out_proj", "attn_output"},
    {"self_attn.q_layernorm", "attn_q_norm"},
    {"self_attn.k_layernorm", "attn_k_norm"},
    {"conv.in_proj", "shortconv.in_proj"},
    {"conv.conv", "shortconv.conv"},
    {"conv.out_proj", "shortconv.out_proj"},
    {"ffn_norm", "ffn_norm"},
    {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w3", "ffn_up"},
    {"feed_forward.w2", "ffn_down"},
});
constexpr std::string_view lfm2_last_norm = "model.embedding_norm";

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
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"layer_scalar", "layer_output_scale"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
    {"experts.gate_up_proj", "ffn_gate_up_exps"},
    {"experts.down_proj", "ffn_down_exps"},
    {"mlp.experts.gate_up_proj", "ffn_gate_up_exps"},
    {"mlp.experts.gate_up_proj_blocks", "ffn_gate_up_exps.blocks"},
    {"mlp.experts.gate_up_proj_scales", "ffn_gate_up_exps.scales"},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_up_exps.bias"},
    {"mlp.experts.down_proj", "ffn_down_exps"},
    {"mlp.experts.down_proj_blocks", "ffn_down_exps.blocks"},
    {"mlp.experts.down_proj_scales", "ffn_down_exps.scales"},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
});

// The same of Granite 4: some other families have tensors of these names of ours, too.
constexpr std::array granite_names = std::to_array<NamePair>({
    {"mamba.in_proj", "ssm_in"},
    {"mamba.conv1d", "ssm_conv1d"},
    {"mamba.norm", "ssm_norm"},
    {"mamba.out_proj", "ssm_out"},
    {"shared_mlp.input_linear", "ffn_gate_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
    {"block_sparse_moe.input_linear", "ffn_gate_up_exps"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
});
constexpr std::array granite_vectors = std::to_array<NamePair>({
    {"mamba.A_log", "ssm_a"},
    {"mamba.D", "ssm_d"},
    {"mamba.dt_bias", "ssm_dt.bias"},
});

// Of Nemotron, whose "backbone." is read as "model.".
constexpr std::array nemotron_model_names = std::to_array<NamePair>({
    {"model.embeddings", "token_embd"},
    {"model.norm_f", "output_norm"},
});
constexpr std::array nemotron_names = std::to_array<NamePair>({
    {"norm", "attn_norm"},
    {"mixer.in_proj", "ssm_in"},
    {"mixer.conv1d", "ssm_conv1d"},
    {"mixer.norm", "ssm_norm"},
    {"mixer.out_proj", "ssm_out"},
    {"mixer.q_proj", "attn_q"},
    {"mixer.k_proj", "attn_k"},
    {"mixer.v_proj", "attn_v"},
    {"mixer.o_proj", "attn_output"},
    {"mixer.up_proj", "ffn_up"},
    {"mixer.down_proj", "ffn_down"},
    {"mixer.gate", "ffn_gate_inp"},
    {"mixer.shared_experts.up_proj", "ffn_up_shexp"},
    {"mixer.shared_experts.down_proj", "ffn_down_shexp"},
});
constexpr std::array nemotron_vectors = std::to_array<NamePair>({
    {"mixer.A_log", "ssm_a"},
    {"mixer.D", "ssm_d"},
    {"mixer.dt_bias", "ssm_dt.bias"},
    {"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mixer.experts.up_proj", "ffn_up_exps"},
    {"mixer.experts.down_proj", "ffn_down_exps"},
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

/// "model.layers.3.mlp.experts.7.up_proj" -> "blk.3.ffn_up.7"; "mixer" in the place of "mlp" likewise.
std::optional<std::string> name_of_expert(std::string_view name) {
  constexpr std::string_view prefix = "model.layers.", middles[] = {"mlp.experts.", "mixer.experts."};
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view in_layers = name.substr(prefix.size());
  const size_t dot = in_layers.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto middle =
      std::ranges::find_if(middles, [&](std::string_view each) { return in_layers.substr(dot + 1).starts_with(each); });
  if (middle == std::end(middles)) return std::nullopt;
  const std::string_view rest = in_layers.substr(dot + 1 + middle->size());
  const size_t end = rest.find('.');
  if (end == std::string_view::npos) return std::nullopt;
  for (const auto& [theirs, ours] : expert_names) {
    if (rest.substr(end + 1) != theirs) continue;
    return "blk." + std::string(in_layers.substr(0, dot + 1)) + std::string(ours) + "." +
           std::string(rest.substr(0, end));
  }
  return std::nullopt;
}

/// The names of one layer's tensors or of the model, looked up by ours. Several may stand for one of ours: the first
/// that `fits`.
template <class Fits>
std::optional<std::string_view> their_name(std::span<const NamePair> names, std::string_view ours, const Fits& fits) {
  for (const auto& [theirs, each] : names) {
    if (each == ours && fits(theirs)) return theirs;
  }
  return std::nullopt;
}

/// "REST" of "blk.3.REST" -> what stands behind "model.layers.3."; empty for names we do not know.
std::string name_inside_layer(std::string_view ours, const FolderNames& names, bool is_recurrent) {
  const auto any = [](std::string_view) { return true; };
  if (names.is_granite) {
    if (const auto vector = their_name(granite_vectors, ours, any)) return std::string(*vector);
    if (const auto weight = their_name(granite_names, ours, any)) {
      return std::string(*weight) + std::string(weight_ending);
    }
  }
  if (names.is_nemotron) {
    if (const auto vector = their_name(nemotron_vectors, ours, any)) return std::string(*vector);
    if (const auto weight = their_name(nemotron_names, ours, any)) {
      return std::string(*weight) + std::string(weight_ending);
    }
  }
  const auto of_family = [&](std::string_view theirs) {
    return !theirs.ends_with("_proj") || names.has_post_norms == theirs.starts_with("experts.");
  };
  if (const auto vector = their_name(layer_vectors, ours, of_family)) return std::string(*vector);
  if (ours.ends_with(bias_ending)) {
    const std::string stem = name_inside_layer(ours.substr(0, ours.size() - bias_ending.size()), names, is_recurrent);
    if (!stem.ends_with(weight_ending)) return {};
    return stem.substr(0, stem.size() - weight_ending.size()) + std::string(bias_ending);
  }
  const std::string_view plain = without_expert(ours);
  if (plain.size() < ours.size()) {
    const auto part = their_name(expert_names, plain, any);
    if (!part) return {};
    return (names.is_nemotron ? "mixer.experts." : "mlp.experts.") + std::string(ours.substr(plain.size() + 1)) + "." +
           std::string(*part) + ".weight";
  }
  if (names.is_lfm2) {
    if (const auto own = their_name(lfm2_names, ours, any)) return std::string(*own) + std::string(weight_ending);
  }
  if (ours == "attn_post_norm") return "post_attention_layernorm.weight";
  const auto fits = [&](std::string_view theirs) {
    if (theirs.starts_with("linear_attn.")) return is_recurrent;
    if (ours == "attn_qkv") return !is_recurrent;
    if (ours == "ffn_norm") return names.has_post_norms == theirs.starts_with("pre_");
    if (ours == "ffn_up") return names.has_fused_tensors == (theirs == "mlp.gate_up_proj");
    if (ours != "ffn_gate_inp") return true;
    return theirs == (names.is_gpt_oss ? "mlp.router" : names.has_post_norms ? "router.proj" : "mlp.gate");
  };
  const auto weight = their_name(layer_names, ours, fits);
  return weight ? std::string(*weight) + std::string(weight_ending) : std::string();
}

std::string canonical_vector(std::string_view name) {
  if (const std::optional<std::string> found = name_in_layer(name, granite_vectors)) return *found;
  if (const std::optional<std::string> found = name_in_layer(name, nemotron_vectors)) return *found;
  return name_in_layer(name, layer_vectors).value_or(std::string(name));
}

}  // namespace

bool is_of_pictures_or_sounds(std::string_view name) {
  static constexpr std::string_view starts[] = {
      "model.visual.", "visual.", "model.vision", "vision_tower.", "vision_model.", "model.multi_modal_projector.",
      "multi_modal_projector.", "mm_projector.", "model.mm_projector.", "model.image_newline", "model.audio",
      "audio_tower.", "model.embed_vision.", "embed_vision.", "model.embed_audio.", "embed_audio.",
      // GGUF
      "v.", "mm.", "a.", "resampler."};
  return std::ranges::any_of(starts, [&](std::string_view start) { return name.starts_with(start); });
}

std::string_view without_expert(std::string_view canonical) {
  const size_t dot = canonical.rfind('.');
  const bool is_number = dot != std::string_view::npos && dot + 1 < canonical.size() &&
                         canonical.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
  return is_number ? canonical.substr(0, dot) : canonical;
}

std::string canonical_name_from_gguf(std::string_view name, bool has_post_norms) {
  if (name.size() > weight_ending.size() && name.ends_with(weight_ending)) name.remove_suffix(weight_ending.size());
  if (name == "token_embd_norm") return "output_norm";  // LFM2's, which is behind the last layer all the same
  const NamePair norms[] = {{".post_attention_norm", has_post_norms ? ".attn_post_norm" : ".ffn_norm"},  // in hybrids
                            {".post_ffw_norm", ".ffn_post_norm"}};
  for (const auto& [theirs, ours] : norms) {
    if (name.ends_with(theirs)) return std::string(name.substr(0, name.size() - theirs.size())) + std::string(ours);
  }
  // Of Ollama's converters: the bias of recurrences, which has no matrix; and gpt-oss's output of attention.
  if (name.ends_with(".ssm_dt")) return std::string(name) + std::string(bias_ending);
  for (const std::string_view ending : {".attn_out", ".attn_out.bias"}) {
    if (!name.starts_with("blk.") || !name.ends_with(ending)) continue;
    return std::string(name.substr(0, name.size() - ending.size())) + ".attn_output" +
           std::string(ending.substr(std::string_view(".attn_out").size()));
  }
  return std::string(name);
}

std::string hugging_face_name(std::string_view canonical, const FolderNames& names) {
  for (const auto& [theirs, ours] : nemotron_model_names) {
    if (names.is_nemotron && canonical == ours) return std::string(theirs) + std::string(weight_ending);
  }
  if (names.is_lfm2 && canonical == "output_norm") return std::string(lfm2_last_norm) + std::string(weight_ending);
  for (const auto& [theirs, ours] : model_names) {
    if (canonical == ours) return std::string(theirs) + std::string(weight_ending);
  }
  if (canonical == "fc" || canonical == "hidden_norm") return std::string(canonical) + std::string(weight_ending);
  constexpr std::string_view prefix = "blk.";
  const size_t dot = canonical.find('.', prefix.size());
  if (!canonical.starts_with(prefix) || dot == std::string_view::npos) return std::string(canonical);
  const std::string layer(canonical.substr(prefix.size(), dot - prefix.size()));
  bool is_recurrent = false;
  for (size_t n = 0; n < names.recurrent.size(); ++n) is_recurrent |= names.recurrent[n] && std::to_string(n) == layer;
  const std::string inside = name_inside_layer(canonical.substr(dot + 1), names, is_recurrent);
  return inside.empty() ? std::string(canonical) : "model.layers." + layer + "." + inside;
}

std::string without_wrappers(std::string_view name) {
  static constexpr std::string_view wrappers[] = {
      "_orig_mod",  "module",    "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module",
      "base_model", "base_layer"};
  std::string result;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (std::ranges::find(wrappers, part) == std::end(wrappers)) {
      result += (result.empty() ? "" : ".") + std::string(part);
    }
    begin = end + 1;
  }
  // PEFT, Lightning and others keep the model in a field of that name.
  constexpr std::string_view field = "model.";
  while (result.starts_with("model.model.") || result.starts_with("model.lm_head.")) result.erase(0, field.size());
  return result;
}

std::string canonical_name_from_hugging_face(std::string_view name, bool has_post_norms) {
  if (const std::string plain = without_wrappers(name); plain != name) {
    return canonical_name_from_hugging_face(plain, has_post_norms);
  }
  for (const std::string_view bare : {"layers.", "embed_tokens.", "norm.", "embed_tokens_per_layer.", "per_layer_",
                                      "embedding_norm."}) {  // saved without the head's class
    if (name.starts_with(bare)) return canonical_name_from_hugging_face("model." + std::string(name), has_post_norms);
  }
  if (constexpr std::string_view backbone = "backbone."; name.starts_with(backbone)) {
    return canonical_name_from_hugging_face("model." + std::string(name.substr(backbone.size())), has_post_norms);
  }
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
  for (const std::span<const NamePair> names :
       {std::span<const NamePair>(model_names), std::span<const NamePair>(nemotron_model_names)}) {
    for (const auto& [theirs, ours] : names) {
      if (stem == theirs) return std::string(ours);
    }
  }
  if (stem == lfm2_last_norm) return "output_norm";
  if (has_post_norms) {
    static constexpr NamePair after_mixer[] = {{"post_attention_layernorm", "attn_post_norm"}};
    if (const std::optional<std::string> found = name_in_layer(stem, after_mixer)) return *found;
  }
  if (const std::optional<std::string> found = name_in_layer(stem, layer_names)) return *found;
  if (const std::optional<std::string> found = name_in_layer(stem, granite_names)) return *found;
  if (const std::optional<std::string> found = name_in_layer(stem, nemotron_names)) return *found;
  if (const std::optional<std::string> found = name_in_layer(stem, lfm2_names)) return *found;
  return name_of_expert(stem).value_or(std::string(name));
}

namespace {

uint64_t rows_of_parts(const FusedTensor& fused) {
  uint64_t rows = 0;  // of validated sizes
  for (const RequiredTensor& part : fused.parts) rows += part.rows;
  return rows;
}

TensorView shape_of(const FusedTensor& fused) {
  const RequiredTensor& part = fused.parts.front();
  TensorView expected;
  expected.rank = fused.is_vector ? 1 : fused.stacked != 0 ? 3 : 2;
  expected.shape = {rows_of_parts(fused)};
  if (!fused.is_vector) expected.shape[1] = part.cols;
  if (fused.stacked != 0) expected.shape = {fused.stacked, rows_of_parts(fused) / fused.stacked, part.cols};
  return expected;
}

void append_parts(const TensorView& tensor, const FusedTensor& fused, std::vector<TensorView>& result) {
  const TensorView expected = shape_of(fused);
  if (tensor.rank != expected.rank || tensor.shape != expected.shape) {
    throw bad_input("The tensor " + quoted_name(tensor.shown_name()) + " has the shape " + tensor.shape_text() + "; " +
                    expected.shape_text() + " is expected.");
  }
  const uint64_t all = rows_of_parts(fused);
  uint64_t first = 0;
  for (const RequiredTensor& part : fused.parts) {
    TensorView view = tensor;
    view.name = part.name;
    view.rank = fused.is_vector ? 1 : 2;
    view.shape = {part.rows};
    if (!fused.is_vector) view.shape[1] = part.cols;
    // Of a packed matrix a share, which may lie elsewhere: its rows are made of all bytes.
    const uint64_t begin = tensor.bytes.size() * first / all, end = tensor.bytes.size() * (first + part.rows) / all;
    view.bytes = tensor.bytes.subspan(begin, end - begin);
    if (tensor.packed) view.packed = packed_rows(tensor.packed, first);
    first += part.rows;
    result.push_back(std::move(view));
  }
}

}  // namespace

std::vector<FusedTensor> fused_tensors(const ModelConfig& c, const std::function<bool(const std::string& name)>& has) {
  std::vector<FusedTensor> result;
  const bool always = architecture_by_name(c.architecture).has_fused_tensors;
  for (uint32_t n = 0; n < c.layers; ++n) {
    const std::string layer = "blk." + std::to_string(n) + ".";
    if (!c.is_attention(n)) continue;  // recurrences have one matrix of that name
    const uint64_t queries = uint64_t{c.q_width_of(n)} * (c.has_output_gate ? 2 : 1), keys = c.kv_width_of(n);
    if (always || has(layer + "attn_qkv")) {
      result.push_back({layer + "attn_qkv",
                        {{layer + "attn_q", queries, c.hidden},
                         {layer + "attn_k", keys, c.hidden},
                         {layer + "attn_v", keys, c.hidden}}});
    }
    if (has(layer + "attn_qkv.bias")) {
      result.push_back(
          {layer + "attn_qkv.bias",
           {{layer + "attn_q.bias", queries, 1}, {layer + "attn_k.bias", keys, 1}, {layer + "attn_v.bias", keys, 1}},
           true});
    }
    if (!always) continue;
    const uint32_t ffn = c.ffn_of(n);
    result.push_back({layer + "ffn_up", {{layer + "ffn_gate", ffn, c.hidden}, {layer + "ffn_up", ffn, c.hidden}}});
  }
  return result;
}

std::vector<FusedTensor> stacked_experts(const ModelConfig& c, bool must_have,
                                         const std::function<bool(const std::string& name)>& has) {
  std::vector<FusedTensor> result;
  for (uint32_t n = 0; n < c.layers; ++n) {
    if (!c.layer_has_experts(n)) continue;
    const std::string layer = "blk." + std::to_string(n) + ".";
    const auto add = [&](const std::string& name, const std::vector<std::string>& of_expert, uint64_t rows,
                         uint64_t cols) {
      if (!must_have && !has(layer + name)) return;
      FusedTensor& fused = result.emplace_back(FusedTensor{layer + name, {}, false, c.experts});
      for (uint32_t e = 0; e < c.experts; ++e) {
        for (const std::string& part : of_expert) {
          fused.parts.push_back({layer + part + "." + std::to_string(e), rows, cols});
        }
      }
    };
    if (has(layer + "ffn_gate_up_exps")) {
      add("ffn_gate_up_exps", {"ffn_gate", "ffn_up"}, c.expert_ffn, c.hidden);
    } else {
      if (!c.has_square_relu) add("ffn_gate_exps", {"ffn_gate"}, c.expert_ffn, c.hidden);
      add("ffn_up_exps", {"ffn_up"}, c.expert_ffn, c.hidden);
    }
    add("ffn_down_exps", {"ffn_down"}, c.hidden, c.expert_ffn);
  }
  return result;
}

std::vector<TensorView> with_parts(std::span<const TensorView> tensors, std::span<const FusedTensor> fused,
                                   const std::function<std::string(const std::string& name)>& shown) {
  std::unordered_map<std::string_view, const FusedTensor*> wanted;
  for (const FusedTensor& one : fused) wanted.emplace(one.name, &one);
  std::vector<TensorView> result;
  for (const TensorView& tensor : tensors) {
    const auto found = wanted.find(tensor.name);
    if (found == wanted.end()) {
      result.push_back(tensor);
      continue;
    }
    append_parts(tensor, *found->second, result);
    wanted.erase(found);
  }
  for (const FusedTensor& one : fused) {
    if (!wanted.contains(one.name)) continue;
    throw bad_input("The tensor " + quoted_name(shown ? shown(one.name) : one.name) +
                    " is missing; its shape should be " + shape_of(one).shape_text() + ".");
  }
  return result;
}

}  // namespace canopy
