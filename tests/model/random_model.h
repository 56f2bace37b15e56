#pragma once
// Makes complete models of random weights in all types that devices have kernels for, small enough for hundreds of
// passes.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/compute/types.h"
#include "engine/format/dequantize.h"
#include "engine/format/quantize.h"
#include "engine/format/tensor.h"
#include "tests/format/gguf_builder.h"

namespace canopy::test {

struct RandomModel {
  std::string architecture = "llama";
  TensorType type = TensorType::f32;    // of all matrices
  TensorType v_type = TensorType::f32;  // of attn_v and ffn_up, where mixed
  bool mixed = false;
  std::optional<TensorType> finer;  // of attn_v and ffn_down, as in files named Q4_K_M
  bool tied = true;
  /// Of qwen35 and qwen35moe every fourth layer is attention, so that they need four or more.
  uint32_t layers = 2, hidden = 64, heads = 4, kv_heads = 2, head_dim = 16, ffn = 96, vocab = 77, context = 400;
  uint32_t experts = 6, experts_used = 2, expert_ffn = 32, shared_ffn = 48;  // of mixtures; the last of qwen35moe
  std::vector<uint32_t> layer_heads = {}, layer_kv_heads = {};  // by layer, 0 of recurrent ones; empty: as above
  uint32_t seed = 1;
  uint32_t version = 3;  // of GGUF
  /// The type that a matrix is converted to before it is written, for its name and columns; nullopt: none.
  std::function<std::optional<TensorType>(const std::string& name, uint64_t cols)> requantize;

  /// A GGUF file with tokens for ASCII letters; id 1 is <|im_end|>.
  std::string build() const { return builder().build(); }
  /// The same, to be changed before it is built.
  GgufBuilder builder() const;
};

/// The blocks of a [rows, cols] matrix whose values lie around +-1/sqrt(cols).
inline std::string random_matrix(std::mt19937& random, TensorType type, uint64_t rows, uint64_t cols) {
  const float scale = 1.7f / std::sqrt(static_cast<float>(cols));
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::uniform_int_distribution<int> byte(0, 255);
  std::string data;
  if (type == TensorType::q8_0 || type == TensorType::q4_1) {
    for (uint64_t block = 0; block < rows * cols / 32; ++block) {
      const float d = type == TensorType::q8_0 ? scale / 127 : scale / 8;
      data += le(f32_to_f16(d * (0.5f + 0.002f * static_cast<float>(byte(random)))));
      if (type == TensorType::q4_1) data += le(f32_to_f16(-scale + uniform(random) * 0.1f));
      for (int i = 0; i < (type == TensorType::q8_0 ? 32 : 16); ++i) data += static_cast<char>(byte(random));
    }
    return data;
  }
  if (type == TensorType::tq2_0) {
    for (uint64_t block = 0; block < rows * cols / 256; ++block) {
      for (int i = 0; i < 64; ++i) data += static_cast<char>(byte(random));
      data += le(f32_to_f16(scale * (0.5f + 0.002f * static_cast<float>(byte(random)))));
    }
    return data;
  }
  if (type == TensorType::q4_k || type == TensorType::q6_k) {
    for (uint64_t block = 0; block < rows * cols / 256; ++block) {
      const float vary = 0.5f + 0.002f * static_cast<float>(byte(random));
      if (type == TensorType::q4_k) data += le(f32_to_f16(2 * scale / 945 * vary)) + le(f32_to_f16(scale / 31 * vary));
      for (int i = 0; i < (type == TensorType::q4_k ? 140 : 208); ++i) data += static_cast<char>(byte(random));
      if (type == TensorType::q6_k) data += le(f32_to_f16(scale / 4064 * vary));
    }
    return data;
  }
  for (uint64_t i = 0; i < rows * cols; ++i) {
    const float value = uniform(random);
    if (type == TensorType::f32) data += le(value);
    if (type == TensorType::f16) data += le(f32_to_f16(value));
    if (type == TensorType::bf16) data += le(f32_to_bf16(value));
  }
  return data;
}

/// The same values as blocks of another type.
inline std::string requantized(const std::string& data, TensorType from, TensorType to, uint64_t elements) {
  std::vector<float> values(elements);
  dequantize(from, as_bytes(data), values);
  if (to == TensorType::f32) return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  std::string blocks(tensor_bytes(to, elements, "test"), '\0');
  quantize(to, values, std::as_writable_bytes(std::span(blocks)));
  return blocks;
}

inline GgufBuilder RandomModel::builder() const {
  std::mt19937 random(seed);
  GgufBuilder b;
  b.version = version;
  const auto key = [&](const char* name) { return architecture + "." + name; };
  b.text("general.architecture", architecture).text("general.name", "random");
  b.value<uint32_t>(key("block_count"), layers).value<uint32_t>(key("context_length"), context);
  b.value<uint32_t>(key("embedding_length"), hidden).value<uint32_t>(key("feed_forward_length"), ffn);
  const auto by_layer = [&](const std::string& name, uint32_t of_all, const std::vector<uint32_t>& of_layers) {
    if (of_layers.empty()) b.value<uint32_t>(name, of_all);
    if (!of_layers.empty()) b.numbers<uint32_t>(name, of_layers);
  };
  by_layer(key("attention.head_count"), heads, layer_heads);
  by_layer(key("attention.head_count_kv"), kv_heads, layer_kv_heads);
  b.value<uint32_t>(key("attention.key_length"), head_dim).value<uint32_t>(key("attention.value_length"), head_dim);
  const bool hybrid = architecture.starts_with("qwen35"), gpt_oss = architecture == "gpt-oss",
             mixture = architecture.ends_with("moe") || gpt_oss, gemma = architecture.starts_with("gemma");
  b.value<uint32_t>(key("rope.dimension_count"), hybrid ? head_dim / 2 : head_dim);
  constexpr uint32_t key_heads = 2, value_heads = 4, state_dim = 16, taps = 4;
  if (hybrid) {
    b.value<uint32_t>(key("ssm.conv_kernel"), taps).value<uint32_t>(key("ssm.state_size"), state_dim);
    b.value<uint32_t>(key("ssm.group_count"), key_heads).value<uint32_t>(key("ssm.time_step_rank"), value_heads);
    b.value<uint32_t>(key("ssm.inner_size"), value_heads * state_dim);
    b.value<uint32_t>(key("full_attention_interval"), 4);
  }
  b.value<float>(key("attention.layer_norm_rms_epsilon"), 1e-5f).value<float>(key("rope.freq_base"), 10000.0f);
  if (mixture) {
    b.value<uint32_t>(key("expert_count"), experts).value<uint32_t>(key("expert_used_count"), experts_used);
    b.value<uint32_t>(key("expert_feed_forward_length"), expert_ffn);
    if (hybrid) b.value<uint32_t>(key("expert_shared_feed_forward_length"), shared_ffn);
  }
  if (gpt_oss) {
    b.value<uint32_t>(key("attention.sliding_window"), 9).text(key("rope.scaling.type"), "yarn");
    b.value<float>(key("rope.scaling.factor"), 4.0f);
    b.value<uint32_t>(key("rope.scaling.original_context_length"), context / 4);
  }
  if (gemma) b.value<uint32_t>(key("attention.sliding_window"), 9);
  if (architecture == "gemma2") {  // lower than in published ones, so that they count
    b.value<float>(key("attn_logit_softcapping"), 3.0f).value<float>(key("final_logit_softcapping"), 10.0f);
  }
  if (architecture == "gemma3") b.value<uint32_t>(key("attention.sliding_window_pattern"), 2);
  b.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  std::vector<std::string> tokens = {"<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types = {3, 3};
  for (char c = 'A'; tokens.size() < vocab && c <= 'z'; ++c) {
    tokens.emplace_back(1, c);
    types.push_back(1);
  }
  tokens.emplace_back("ab");
  types.push_back(1);
  b.texts("tokenizer.ggml.tokens", tokens).numbers<int32_t>("tokenizer.ggml.token_type", types);
  b.texts("tokenizer.ggml.merges", {"a b"});
  b.value<uint32_t>("tokenizer.ggml.bos_token_id", 0).value<uint32_t>("tokenizer.ggml.eos_token_id", 1);
  b.value<bool>("tokenizer.ggml.add_bos_token", false);

  const auto matrix = [&](const std::string& name, TensorType kind, uint64_t rows, uint64_t cols) {
    std::string data = random_matrix(random, kind, rows, cols);
    const std::optional<TensorType> to = requantize ? requantize(name, cols) : std::nullopt;
    if (to) data = requantized(data, kind, *to, rows * cols);
    b.tensor(name + ".weight", {cols, rows}, to.value_or(kind), std::move(data));
  };
  const auto stacked = [&](const std::string& name, TensorType kind, uint64_t rows, uint64_t cols) {
    std::string data;
    for (uint32_t e = 0; e < experts; ++e) data += random_matrix(random, kind, rows, cols);
    const std::optional<TensorType> to = requantize ? requantize(name, cols) : std::nullopt;
    if (to) data = requantized(data, kind, *to, experts * rows * cols);
    b.tensor(name + ".weight", {cols, rows, experts}, to.value_or(kind), std::move(data));
  };
  const auto norm = [&](const std::string& name, uint64_t count, const char* suffix = ".weight", float factor = 1) {
    std::uniform_real_distribution<float> around_one(0.5f, 1.5f);
    std::string data;
    for (uint64_t i = 0; i < count; ++i) data += le(factor * around_one(random));
    b.tensor(name + suffix, {count}, TensorType::f32, data);
  };
  const auto biases = [&](const std::string& name, uint64_t count) {
    b.tensor(name + ".bias", {count, experts}, TensorType::f32, random_matrix(random, TensorType::f32, experts, count));
  };
  const TensorType other = mixed ? v_type : type;
  const auto add_experts = [&](const std::string& blk) {
    matrix(blk + "ffn_gate_inp", TensorType::f32, experts, hidden);
    stacked(blk + "ffn_gate_exps", type, expert_ffn, hidden);
    stacked(blk + "ffn_up_exps", other, expert_ffn, hidden);
    stacked(blk + "ffn_down_exps", finer.value_or(type), hidden, expert_ffn);
    if (gpt_oss) {
      norm(blk + "ffn_gate_inp", experts, ".bias");
      biases(blk + "ffn_gate_exps", expert_ffn);
      biases(blk + "ffn_up_exps", expert_ffn);
      biases(blk + "ffn_down_exps", hidden);
    }
    if (!hybrid) return;
    norm(blk + "ffn_gate_inp_shexp", hidden);
    matrix(blk + "ffn_gate_shexp", type, shared_ffn, hidden);
    matrix(blk + "ffn_up_shexp", other, shared_ffn, hidden);
    matrix(blk + "ffn_down_shexp", finer.value_or(type), hidden, shared_ffn);
  };
  const auto add_feed_forward = [&](const std::string& blk) {
    norm(blk + (hybrid || gpt_oss ? "post_attention_norm" : "ffn_norm"), hidden);
    if (gemma) {
      norm(blk + "post_attention_norm", hidden);
      norm(blk + "post_ffw_norm", hidden);
    }
    if (mixture) return add_experts(blk);
    matrix(blk + "ffn_gate", type, ffn, hidden);
    matrix(blk + "ffn_up", other, ffn, hidden);
    matrix(blk + "ffn_down", finer.value_or(type), hidden, ffn);
  };
  matrix("token_embd", type, vocab, hidden);
  norm("output_norm", hidden);
  if (!tied) matrix("output", type, vocab, hidden);
  for (uint32_t n = 0; n < layers; ++n) {
    const std::string blk = "blk." + std::to_string(n) + ".";
    norm(blk + "attn_norm", hidden);
    if (hybrid && n % 4 != 3) {
      const uint32_t values = value_heads * state_dim, channels = 2 * key_heads * state_dim + values;
      matrix(blk + "attn_qkv", type, channels, hidden);
      matrix(blk + "attn_gate", type, values, hidden);
      matrix(blk + "ssm_beta", TensorType::f32, value_heads, hidden);
      matrix(blk + "ssm_alpha", TensorType::f32, value_heads, hidden);
      matrix(blk + "ssm_conv1d", TensorType::f32, channels, taps);
      norm(blk + "ssm_dt", value_heads, ".bias");
      norm(blk + "ssm_a", value_heads, "", -0.5f);
      norm(blk + "ssm_norm", state_dim);
      matrix(blk + "ssm_out", type, hidden, values);
      add_feed_forward(blk);
      continue;
    }
    const uint32_t queries = (layer_heads.empty() ? heads : layer_heads[n]) * head_dim;
    const uint32_t keys = (layer_kv_heads.empty() ? kv_heads : layer_kv_heads[n]) * head_dim;
    matrix(blk + "attn_q", type, queries * (hybrid ? 2 : 1), hidden);
    matrix(blk + "attn_k", type, keys, hidden);
    matrix(blk + "attn_v", finer.value_or(other), keys, hidden);
    if (architecture == "qwen2" || gpt_oss) {
      norm(blk + "attn_q", queries, ".bias");
      norm(blk + "attn_k", keys, ".bias");
      norm(blk + "attn_v", keys, ".bias");
    }
    if (architecture.starts_with("qwen3") || architecture == "gemma3") {
      norm(blk + "attn_q_norm", head_dim);
      norm(blk + "attn_k_norm", head_dim);
    }
    matrix(blk + "attn_output", type, hidden, queries);
    if (gpt_oss) {
      norm(blk + "attn_output", hidden, ".bias");
      norm(blk + "attn_sinks", queries / head_dim);
    }
    add_feed_forward(blk);
  }
  return b;
}

}  // namespace canopy::test
