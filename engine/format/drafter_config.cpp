#include "engine/format/drafter_config.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr size_t max_aux_layers = 64;

void check_block(const DrafterConfig& config) {
  if (config.block_size >= 2 && config.block_size <= max_draft_block) return;
  throw bad_input("The drafter's block size is " + std::to_string(config.block_size) + "; 2 to " +
                  std::to_string(max_draft_block) + " is allowed, the root and at least one mask row.");
}

void check_aux_layers(const DrafterConfig& config) {
  const std::vector<uint32_t>& aux_layers = config.aux_layers;
  if (aux_layers.empty() || aux_layers.size() > max_aux_layers) {
    throw bad_input("The drafter names " + std::to_string(aux_layers.size()) + " target layers (taps); 1 to " +
                    std::to_string(max_aux_layers) + " are allowed.");
  }
  for (size_t i = 0; i < aux_layers.size(); ++i) {
    if (std::find(aux_layers.begin(), aux_layers.begin() + static_cast<std::ptrdiff_t>(i), aux_layers[i]) !=
        aux_layers.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw bad_input("The drafter names target layer " + std::to_string(aux_layers[i]) + " twice among its taps.");
    }
    if (config.target_layers != 0 && aux_layers[i] >= config.target_layers) {
      throw bad_input("The drafter's tap " + std::to_string(aux_layers[i]) + " is outside the " +
                      std::to_string(config.target_layers) + " layers that it says its target has (0 to " +
                      std::to_string(config.target_layers - 1) + ").");
    }
  }
}

void check_draft_vocabulary(const DrafterConfig& config) {
  const uint32_t stated = config.draft_vocab_size;
  const size_t named = config.draft_token_ids.size();
  if (stated == 0 || stated == named || (named == 0 && stated == config.vocab)) return;
  throw bad_input("The drafter says that it drafts " + std::to_string(stated) + " tokens (draft_vocab_size), but " +
                  (named == 0 ? "does not name them: the tensor 'd2t' is missing."
                              : "names " + std::to_string(named) + "; it must be the same number."));
}

void check_scale(const char* field, float value, bool zero_allowed) {
  constexpr float most = 1e6f;
  if (std::isfinite(value) && std::abs(value) <= most && (value > 0 || (zero_allowed && value == 0))) return;
  std::ostringstream text;
  text << value;
  throw bad_input("The drafter's " + std::string(field) + " is " + text.str() + "; a number " +
                  (zero_allowed ? "from" : "above") + " 0 to 1e+06 is allowed.");
}

}  // namespace

DrafterAttention drafter_attention(uint32_t window) {
  return {window, window != 0};
}

void validate_drafter_config(const DrafterConfig& config) {
  validate_transformer(config.transformer);
  check_block(config);
  check_aux_layers(config);
  if (config.vocab != 0 && config.mask_token >= config.vocab) {
    throw bad_input("The drafter's mask token is " + std::to_string(config.mask_token) +
                    ", outside its vocabulary of " + std::to_string(config.vocab) + " tokens.");
  }
  check_draft_vocabulary(config);
  if (config.attention.size() != config.transformer.layers) {
    throw bad_input("The drafter states the attention of " + std::to_string(config.attention.size()) +
                    " layers, but has " + std::to_string(config.transformer.layers) + ".");
  }
  check_scale("input embedding scale", config.input_embedding_scale, false);
  check_scale("output multiplier", config.output_multiplier, false);
  check_scale("final logit softcapping", config.final_logit_softcapping, true);
}

std::vector<LayerSpec> layer_specs(const DrafterConfig& config) {
  std::vector<LayerSpec> specs;
  for (const DrafterAttention& layer : config.attention) {
    specs.push_back({.qk_norm = config.transformer.has_qk_norm,
                     .rope = config.transformer.rope_layout,
                     .causal = layer.causal,
                     .window = layer.window});
  }
  return specs;
}

std::vector<RequiredTensor> required_drafter_tensors(const DrafterConfig& config) {
  const uint64_t hidden = config.transformer.hidden;
  std::vector<RequiredTensor> result = {
      {"fc", hidden, config.feature_width()}, {"hidden_norm", 1, hidden}, {"output_norm", 1, hidden}};
  if (config.own_head) result.push_back({"output", config.draft_token_ids.size(), hidden});
  append_layer_tensors(config.transformer, layer_specs(config), result);
  return result;
}

}  // namespace canopy
