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
  /// Of qwen35 and qwen35moe every fourth layer is attention, so that they need four or more; of lfm2 every second.
  /// Of gemma4 every second
  /// one sees the whole text, takes its values from its keys, and has heads of head_dim; those of the others are half
  /// as long.
  uint32_t layers = 2, hidden = 64, heads = 4, kv_heads = 2, head_dim = 16, ffn = 96, vocab = 77, context = 400;
  uint32_t experts = 6, experts_used = 2, expert_ffn = 32, shared_ffn = 48;  // of mixtures; the last of qwen35moe
  uint32_t layer_inputs = 0, shared_kv = 0;  // of gemma4: width of inputs of layers; layers that read another's keys
  bool experts_beside = false;               // of gemma4: beside each feed-forward
  /// Of deepseek2, whose first layer has no experts, as that of glm4moe; head_dim is the latent and what turns beside
  /// it then.
  uint32_t latent_query_rank = 24, latent_key_dim = 12, latent_value_dim = 16, latent_turned = 8;
  /// Of deepseek2: its router, with a bias of the choice and three groups of experts, of which two count. That of
  /// glm4moe always is such a one, behind a first layer without experts.
  bool latent_sigmoid = true;
  // Of glm4moe: norms of heads, as the larger ones have; a layer behind the last that predicts further tokens.
  bool normed_heads = false, further = false;
  std::string pattern = "ME*M-M";  // of nemotron_h_moe, a letter for each layer
  bool granite_experts = true;     // of granitehybrid, of which every fourth layer is attention, too
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
  b.value<uint32_t>(key("block_count"), layers + (further ? 1 : 0)).value<uint32_t>(key("context_length"), context);
  const bool nemotron = architecture == "nemotron_h_moe";
  const auto is_of = [&](uint32_t n, std::string_view kinds) { return kinds.find(pattern[n]) != kinds.npos; };
  b.value<uint32_t>(key("embedding_length"), hidden);
  if (nemotron) {
    std::vector<int32_t> widths;
    for (uint32_t n = 0; n < layers; ++n) widths.push_back(is_of(n, "E") ? expert_ffn : is_of(n, "-") ? ffn : 0);
    b.numbers<int32_t>(key("feed_forward_length"), widths);
  } else {
    b.value<uint32_t>(key("feed_forward_length"), ffn);
  }
  const auto by_layer = [&](const std::string& name, uint32_t of_all, const std::vector<uint32_t>& of_layers) {
    if (of_layers.empty()) b.value<uint32_t>(name, of_all);
    if (!of_layers.empty()) b.numbers<uint32_t>(name, of_layers);
  };
  by_layer(key("attention.head_count"), heads, layer_heads);
  const uint32_t rank = head_dim - latent_turned, latent_queries = latent_key_dim + latent_turned;
  const bool is_latent = architecture == "deepseek2", granite = architecture == "granitehybrid";
  std::vector<uint32_t> of_keys = layer_kv_heads;
  for (uint32_t n = 0; granite && n < layers; ++n) of_keys.push_back(n % 4 == 3 ? kv_heads : 0);
  for (uint32_t n = 0; nemotron && n < layers; ++n) of_keys.push_back(is_of(n, "*") ? kv_heads : 0);
  for (uint32_t n = 0; architecture == "lfm2" && n < layers; ++n) of_keys.push_back(n % 2 == 0 ? 0 : kv_heads);
  by_layer(key("attention.head_count_kv"), is_latent ? 1 : kv_heads, of_keys);
  b.value<uint32_t>(key("attention.key_length"), head_dim);
  b.value<uint32_t>(key("attention.value_length"), is_latent ? rank : head_dim);
  const bool next = architecture == "qwen3next", phi = architecture == "phi3";
  const bool hybrid = architecture.starts_with("qwen35") || next, gpt_oss = architecture == "gpt-oss",
             latent = architecture == "deepseek2", glm = architecture == "glm4moe", routed = latent || glm,
             mixture = architecture.ends_with("moe") || next || gpt_oss || latent || (granite && granite_experts),
             sigmoid = glm || latent_sigmoid, lfm2 = architecture == "lfm2", gemma = architecture.starts_with("gemma"),
             gemma4 = architecture == "gemma4";
  b.value<uint32_t>(key("rope.dimension_count"), latent ? latent_turned : hybrid || glm ? head_dim / 2 : head_dim);
  if (latent) {
    if (latent_query_rank != 0) b.value<uint32_t>(key("attention.q_lora_rank"), latent_query_rank);
    b.value<uint32_t>(key("attention.kv_lora_rank"), rank);
    b.value<uint32_t>(key("attention.key_length_mla"), latent_queries);
    b.value<uint32_t>(key("attention.value_length_mla"), latent_value_dim);
  }
  if (further) b.value<uint32_t>(key("nextn_predict_layers"), 1);
  if (routed) {
    b.value<uint32_t>(key("leading_dense_block_count"), 1).value<uint32_t>(key("expert_shared_count"), 2);
    b.value<uint32_t>(key("expert_gating_func"), sigmoid ? 2 : 1);
    b.value<bool>(key("expert_weights_norm"), sigmoid).value<float>(key("expert_weights_scale"), 1.5f);
    if (sigmoid) {
      b.value<uint32_t>(key("expert_group_count"), 3).value<uint32_t>(key("expert_group_used_count"), 2);
    }
  }
  const uint32_t key_heads = granite ? 1 : 2, value_heads = 4, state_dim = 16, taps = 4;
  if (lfm2) b.value<uint32_t>(key("shortconv.l_cache"), 3);
  if (hybrid || granite || nemotron) {
    b.value<uint32_t>(key("ssm.conv_kernel"), taps).value<uint32_t>(key("ssm.state_size"), state_dim);
    b.value<uint32_t>(key("ssm.group_count"), key_heads).value<uint32_t>(key("ssm.time_step_rank"), value_heads);
    b.value<uint32_t>(key("ssm.inner_size"), value_heads * state_dim);
    if (hybrid) b.value<uint32_t>(key("full_attention_interval"), 4);
  }
  if (granite) b.value<bool>(key("rope.scaling.finetuned"), false);
  if (architecture.starts_with("granite")) {
    b.value<float>(key("attention.scale"), 0.2f);
    b.value<float>(key("embedding_scale"), 3.0f).value<float>(key("residual_scale"), 0.4f);
    b.value<float>(key("logit_scale"), 0.5f);
  }
  b.value<float>(key(nemotron ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"), 1e-5f);
  b.value<float>(key("rope.freq_base"), 10000.0f);
  if (mixture) {
    b.value<uint32_t>(key("expert_count"), experts).value<uint32_t>(key("expert_used_count"), experts_used);
    b.value<uint32_t>(key("expert_feed_forward_length"), expert_ffn);
    if (hybrid || granite || nemotron) b.value<uint32_t>(key("expert_shared_feed_forward_length"), shared_ffn);
    if (nemotron) b.value<bool>(key("expert_weights_norm"), true).value<float>(key("expert_weights_scale"), 1.5f);
  }
  if (experts_beside) {
    b.value<uint32_t>(key("expert_count"), experts).value<uint32_t>(key("expert_used_count"), experts_used);
    b.value<uint32_t>(key("expert_feed_forward_length"), expert_ffn);
  }
  if (gpt_oss) {
    b.value<uint32_t>(key("attention.sliding_window"), 9).text(key("rope.scaling.type"), "yarn");
    b.value<float>(key("rope.scaling.factor"), 4.0f);
    b.value<uint32_t>(key("rope.scaling.original_context_length"), context / 4);
  }
  if (architecture == "mistral3") {  // queries grow from a step of 16 positions to the next
    b.text(key("rope.scaling.type"), "yarn").value<float>(key("rope.scaling.factor"), 4.0f);
    b.value<uint32_t>(key("rope.scaling.original_context_length"), 16);
    b.value<float>(key("rope.scaling.yarn_log_multiplier"), 1.0f)
        .value<float>(key("attention.temperature_scale"), 0.4f);
  }
  if (gemma) b.value<uint32_t>(key("attention.sliding_window"), 9);
  if (architecture == "gemma2") {  // lower than in published ones, so that they count
    b.value<float>(key("attn_logit_softcapping"), 3.0f).value<float>(key("final_logit_softcapping"), 10.0f);
  }
  if (architecture == "gemma3") b.value<uint32_t>(key("attention.sliding_window_pattern"), 2);
  if (gemma4) {
    std::string slides;
    for (uint32_t n = 0; n < layers; ++n) slides += static_cast<char>(n % 2 == 0);
    b.array(key("attention.sliding_window_pattern"), GgufType::boolean, layers, slides);
    b.value<uint32_t>(key("attention.key_length_swa"), head_dim / 2);
    b.value<uint32_t>(key("attention.value_length_swa"), head_dim / 2);
    b.value<uint32_t>(key("rope.dimension_count_swa"), head_dim / 2).value<float>(key("rope.freq_base_swa"), 300.0f);
    b.value<float>(key("final_logit_softcapping"), 10.0f);
    b.value<uint32_t>(key("embedding_length_per_layer_input"), layer_inputs);
    b.value<uint32_t>(key("attention.shared_kv_layers"), shared_kv);
    std::string divisors;
    for (uint32_t i = 0; i < head_dim / 2; ++i) divisors += le(i < head_dim / 8 ? 1.0f : 1e30f);
    b.tensor("rope_freqs.weight", {head_dim / 2}, TensorType::f32, divisors);
  }
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
    if (!nemotron) stacked(blk + "ffn_gate_exps", type, expert_ffn, hidden);
    stacked(blk + "ffn_up_exps", other, expert_ffn, hidden);
    stacked(blk + "ffn_down_exps", finer.value_or(type), hidden, expert_ffn);
    if (gpt_oss) {
      norm(blk + "ffn_gate_inp", experts, ".bias");
      biases(blk + "ffn_gate_exps", expert_ffn);
      biases(blk + "ffn_up_exps", expert_ffn);
      biases(blk + "ffn_down_exps", hidden);
    }
    if ((routed && sigmoid) || nemotron) norm(blk + "exp_probs_b", experts, ".bias", 0.3f);
    if (!hybrid && !routed && !granite && !nemotron) return;
    const uint32_t of_shared = routed ? 2 * expert_ffn : shared_ffn;
    if (hybrid) norm(blk + "ffn_gate_inp_shexp", hidden);
    if (!nemotron) matrix(blk + "ffn_gate_shexp", type, of_shared, hidden);
    matrix(blk + "ffn_up_shexp", other, of_shared, hidden);
    matrix(blk + "ffn_down_shexp", finer.value_or(type), hidden, of_shared);
  };
  const auto add_feed_forward = [&](const std::string& blk) {
    norm(blk + (hybrid || gpt_oss || glm ? "post_attention_norm" : "ffn_norm"), hidden);
    if (gemma) {
      norm(blk + "post_attention_norm", hidden);
      norm(blk + "post_ffw_norm", hidden);
    }
    if (mixture && !(routed && blk == "blk.0.")) return add_experts(blk);
    if (experts_beside) {
      add_experts(blk);
      norm(blk + "ffn_gate_inp", hidden, ".scale");
      norm(blk + "ffn_down_exps", experts, ".scale");
      for (const char* name : {"pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"}) norm(blk + name, hidden);
    }
    if (!phi) matrix(blk + "ffn_gate", type, ffn, hidden);
    matrix(blk + "ffn_up", other, phi ? 2 * ffn : ffn, hidden);
    matrix(blk + "ffn_down", finer.value_or(type), hidden, ffn);
  };
  matrix("token_embd", type, vocab, hidden);
  norm(lfm2 ? "token_embd_norm" : "output_norm", hidden);
  if (layer_inputs != 0) {
    matrix("per_layer_token_embd", type, vocab, layers * layer_inputs);
    matrix("per_layer_model_proj", other, layers * layer_inputs, hidden);
    norm("per_layer_proj_norm", layer_inputs);
  }
  if (!tied) matrix("output", type, vocab, hidden);
  for (uint32_t n = 0; n < layers + (further ? 1 : 0); ++n) {
    const std::string blk = "blk." + std::to_string(n) + ".";
    if (n == layers) {
      matrix(blk + "nextn.eh_proj", type, hidden, 2 * hidden);
      for (const char* name : {"nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"}) norm(blk + name, hidden);
    }
    norm(blk + "attn_norm", hidden);
    if (hybrid && n % 4 != 3) {
      const uint32_t values = value_heads * state_dim, channels = 2 * key_heads * state_dim + values;
      matrix(blk + "attn_qkv", type, channels, hidden);
      matrix(blk + "attn_gate", type, values, hidden);
      if (next) matrix(blk + "ssm_ba", TensorType::f32, 2 * value_heads, hidden);
      if (!next) matrix(blk + "ssm_beta", TensorType::f32, value_heads, hidden);
      if (!next) matrix(blk + "ssm_alpha", TensorType::f32, value_heads, hidden);
      matrix(blk + "ssm_conv1d", TensorType::f32, channels, taps);
      norm(blk + "ssm_dt", value_heads, ".bias");
      norm(blk + "ssm_a", value_heads, "", -0.5f);
      norm(blk + "ssm_norm", state_dim);
      matrix(blk + "ssm_out", type, hidden, values);
      add_feed_forward(blk);
      continue;
    }
    if (nemotron && is_of(n, "E")) {
      add_experts(blk);
      continue;
    }
    if (nemotron && is_of(n, "-")) {
      matrix(blk + "ffn_up", type, ffn, hidden);
      matrix(blk + "ffn_down", type, hidden, ffn);
      continue;
    }
    if (nemotron ? is_of(n, "M") : granite && n % 4 != 3) {
      const uint32_t values = value_heads * state_dim, channels = 2 * key_heads * state_dim + values;
      matrix(blk + "ssm_in", type, values + channels + value_heads, hidden);
      matrix(blk + "ssm_conv1d", TensorType::f32, channels, taps);
      norm(blk + "ssm_conv1d", channels, ".bias", 0.2f);
      norm(blk + "ssm_dt", value_heads, ".bias");
      norm(blk + "ssm_a", value_heads, "", -0.5f);
      norm(blk + "ssm_d", value_heads, "");
      norm(blk + "ssm_norm", values);
      matrix(blk + "ssm_out", type, hidden, values);
      if (!nemotron) add_feed_forward(blk);
      continue;
    }
    if (lfm2 && n % 2 == 0) {
      matrix(blk + "shortconv.in_proj", type, 3 * hidden, hidden);
      matrix(blk + "shortconv.conv", TensorType::f32, hidden, 3);
      matrix(blk + "shortconv.out_proj", type, hidden, hidden);
      add_feed_forward(blk);
      continue;
    }
    if (latent) {
      const bool has_rank = latent_query_rank != 0;
      if (has_rank) {
        matrix(blk + "attn_q_a", type, latent_query_rank, hidden);
        norm(blk + "attn_q_a_norm", latent_query_rank);
      }
      matrix(blk + (has_rank ? "attn_q_b" : "attn_q"), type, heads * latent_queries,
             has_rank ? latent_query_rank : hidden);
      matrix(blk + "attn_kv_a_mqa", type, head_dim, hidden);
      norm(blk + "attn_kv_a_norm", rank);
      b.tensor(blk + "attn_k_b.weight", {latent_key_dim, rank, heads}, type,
               random_matrix(random, type, heads * rank, latent_key_dim));
      b.tensor(blk + "attn_v_b.weight", {rank, latent_value_dim, heads}, type,
               random_matrix(random, type, heads * latent_value_dim, rank));
      matrix(blk + "attn_output", type, hidden, heads * latent_value_dim);
      add_feed_forward(blk);
      continue;
    }
    const uint32_t of_head = gemma4 && n % 2 == 0 ? head_dim / 2 : head_dim;
    const uint32_t queries = (layer_heads.empty() ? heads : layer_heads[n]) * of_head;
    const uint32_t keys = (layer_kv_heads.empty() ? kv_heads : layer_kv_heads[n]) * of_head;
    const bool own_kv = (shared_kv == 0 || n + shared_kv < layers) && !phi;
    if (phi) matrix(blk + "attn_qkv", type, queries + 2 * keys, hidden);
    if (!phi) matrix(blk + "attn_q", type, queries * (hybrid ? 2 : 1), hidden);
    if (own_kv) matrix(blk + "attn_k", type, keys, hidden);
    if (own_kv && (!gemma4 || n % 2 == 0)) matrix(blk + "attn_v", finer.value_or(other), keys, hidden);
    if (architecture == "qwen2" || gpt_oss || glm) {
      norm(blk + "attn_q", queries, ".bias");
      norm(blk + "attn_k", keys, ".bias");
      norm(blk + "attn_v", keys, ".bias");
    }
    if (architecture.starts_with("qwen3") || architecture == "gemma3" || gemma4 || lfm2 || normed_heads) {
      norm(blk + "attn_q_norm", of_head);
      if (own_kv) norm(blk + "attn_k_norm", of_head);
    }
    if (gemma4) norm(blk + "layer_output_scale", 1);
    if (layer_inputs != 0) {
      matrix(blk + "inp_gate", type, layer_inputs, hidden);
      matrix(blk + "proj", type, hidden, layer_inputs);
      norm(blk + "post_norm", hidden);
    }
    matrix(blk + "attn_output", type, hidden, queries);
    if (gpt_oss) {
      norm(blk + "attn_output", hidden, ".bias");
      norm(blk + "attn_sinks", queries / head_dim);
    }
    if (!nemotron) add_feed_forward(blk);
  }
  return b;
}

}  // namespace canopy::test
