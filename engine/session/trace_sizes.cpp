#include "engine/session/trace_sizes.h"
#include "engine/format/tensor_names.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "engine/format/architecture.h"
#include "engine/model/stored_type.h"
#include "engine/model/weight_plan.h"

namespace canopy {
namespace {

TraceSizes sizes_of(const ModelConfig& config) {
  TraceSizes sizes;
  sizes.layers = config.layers;
  sizes.hidden = config.hidden;
  sizes.heads = config.mean_heads();
  sizes.kv_heads = config.mean_kv_heads();
  sizes.head_dim = config.head_dim;
  sizes.ffn = config.mean_ffn();
  sizes.vocab = config.vocab;
  sizes.expert_layers = config.layers_with_experts();
  sizes.experts = config.experts;
  sizes.experts_used = config.experts_used;
  sizes.expert_ffn = config.expert_ffn;
  sizes.shared_ffn = config.shared_ffn;
  if (config.recurrent_layers() > 0) {
    const DeltaNetConfig& net = config.delta_net;
    sizes.recurrent_layers = config.recurrent_layers();
    sizes.key_heads = net.key_heads;
    sizes.value_heads = net.value_heads;
    sizes.key_dim = net.key_dim;
    sizes.value_dim = net.value_dim;
    sizes.conv_taps = net.taps;
    sizes.rotary_dim = config.rotary_dim;
    sizes.output_gate = config.has_output_gate;
  }
  sizes.tied_head = config.tied_head;
  sizes.qk_norm = config.has_qk_norm;
  sizes.parameters = config.parameters;
  return sizes;
}

/// That a matrix has on the device, where it was loaded so.
TensorType kept_type(const TensorView& tensor, bool tied_head, QuantizeOnLoad quantized) {
  const std::optional<WeightType> type = weight_type_of(tensor.type);
  if (!type) return tensor.type;
  const bool is_head = tensor.name == "output" || (tensor.name == "token_embd" && tied_head);
  return stored_as(quantized_type(*type, tensor.cols(), is_head, quantized));
}

/// The type of most matrices of each kind: "attn_q" of "blk.7.attn_q".
void add_types(std::span<const TensorView> tensors, QuantizeOnLoad quantized, TraceSizes& sizes) {
  std::map<std::string, std::map<TensorType, uint32_t>> kinds;
  for (const TensorView& tensor : tensors) {
    if (tensor.rank != 2) continue;
    const std::string_view name = without_expert(tensor.name);
    const size_t dot = name.rfind('.');
    const std::string kind(name.substr(dot == std::string_view::npos ? 0 : dot + 1));
    ++kinds[kind][kept_type(tensor, sizes.tied_head, quantized)];
  }
  for (const auto& [kind, types] : kinds) {
    const auto most = std::ranges::max_element(types, {}, [](const auto& each) { return each.second; });
    sizes.types.emplace_back(kind, to_string(most->first));
  }
}

}  // namespace

TraceSizes sizes_of(const ModelFile& file, QuantizeOnLoad quantized) {
  TraceSizes sizes = sizes_of(file.config());
  add_types(file.tensors(), quantized, sizes);
  return sizes;
}

TraceSizes sizes_of(const DrafterFile& file, uint32_t drafted_tokens) {
  const DrafterConfig& config = file.config();
  TraceSizes sizes = sizes_of(config.transformer);
  sizes.block = config.block_size;
  sizes.taps = static_cast<uint32_t>(config.aux_layers.size());
  sizes.drafted_tokens = drafted_tokens;
  add_types(file.tensors(), QuantizeOnLoad::none, sizes);
  return sizes;
}

}  // namespace canopy
