#pragma once
// Makes DFlash drafters of random weights for any target; their drafts are accepted only by chance.

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "engine/format/model_config.h"
#include "tests/base/temp_folder.h"
#include "tests/format/safetensors_builder.h"

namespace canopy::test {

struct RandomDrafter {
  uint32_t layers = 2, heads = 4, kv_heads = 2, head_dim = 16, ffn = 96;
  uint32_t block = 8, mask_token = 2;
  std::vector<uint32_t> aux_layers = {0, 1};
  std::vector<std::string> layer_types;                   // empty: full_attention
  uint32_t window = 0;                                    // of sliding_attention layers
  nlohmann::json extra = nlohmann::json::object();        // further fields for dflash_config
  std::function<void(SafetensorsBuilder&)> more_weights;  // adds tensors
  uint32_t seed = 1;

  /// Writes config.json and model.safetensors for a drafter of `target`.
  void write(const TempFolder& folder, const ModelConfig& target) const {
    folder.write("config.json", config(target).dump());
    folder.write("model.safetensors", weights(target).build());
  }

 private:
  nlohmann::json config(const ModelConfig& target) const {
    nlohmann::json inner = {{"mask_token_id", mask_token}, {"target_layer_ids", aux_layers}};
    inner.update(extra);
    nlohmann::json json = {{"architectures", {"DFlashDraftModel"}},
                           {"hidden_size", target.hidden},
                           {"num_hidden_layers", layers},
                           {"num_attention_heads", heads},
                           {"num_key_value_heads", kv_heads},
                           {"head_dim", head_dim},
                           {"intermediate_size", ffn},
                           {"vocab_size", target.vocab},
                           {"max_position_embeddings", target.max_context},
                           {"rms_norm_eps", 1e-5},
                           {"rope_theta", 10000.0},
                           {"num_target_layers", target.layers},
                           {"block_size", block},
                           {"dflash_config", inner}};
    if (!layer_types.empty()) json["layer_types"] = layer_types;
    if (window > 0) json["sliding_window"] = window;
    return json;
  }

  SafetensorsBuilder weights(const ModelConfig& target) const {
    const uint64_t hidden = target.hidden, q = uint64_t{heads} * head_dim, kv = uint64_t{kv_heads} * head_dim;
    std::mt19937 random(seed);
    SafetensorsBuilder b;
    const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t cols) {
      const float scale = 1.7f / std::sqrt(static_cast<float>(cols));
      add(b, random, name, {rows, cols}, -scale, scale);
    };
    const auto norm = [&](const std::string& name, uint64_t size) { add(b, random, name, {size}, 0.7f, 1.3f); };
    matrix("fc.weight", hidden, aux_layers.size() * hidden);
    norm("hidden_norm.weight", hidden);
    norm("norm.weight", hidden);
    for (uint32_t n = 0; n < layers; ++n) {
      const std::string layer = "layers." + std::to_string(n) + ".";
      norm(layer + "input_layernorm.weight", hidden);
      norm(layer + "post_attention_layernorm.weight", hidden);
      matrix(layer + "self_attn.q_proj.weight", q, hidden);
      matrix(layer + "self_attn.k_proj.weight", kv, hidden);
      matrix(layer + "self_attn.v_proj.weight", kv, hidden);
      matrix(layer + "self_attn.o_proj.weight", hidden, q);
      norm(layer + "self_attn.q_norm.weight", head_dim);
      norm(layer + "self_attn.k_norm.weight", head_dim);
      matrix(layer + "mlp.gate_proj.weight", ffn, hidden);
      matrix(layer + "mlp.up_proj.weight", ffn, hidden);
      matrix(layer + "mlp.down_proj.weight", hidden, ffn);
    }
    if (more_weights) more_weights(b);
    return b;
  }

  static void add(SafetensorsBuilder& b, std::mt19937& random, const std::string& name,
                  const std::vector<uint64_t>& shape, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    std::string data(count * sizeof(float), '\0');
    for (uint64_t i = 0; i < count; ++i) {
      const float value = uniform(random);
      std::memcpy(data.data() + i * sizeof(float), &value, sizeof value);
    }
    b.tensor(name, "F32", shape, data);
  }
};

}  // namespace canopy::test
