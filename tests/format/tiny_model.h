#pragma once
// The smallest complete models: hidden 8, 2 heads of 4 over 1 key/value head, ffn 16, vocabulary 10, one layer.

#include <filesystem>
#include <string>

#include "tests/base/temp_folder.h"
#include "tests/format/gguf_builder.h"
#include "tests/format/safetensors_builder.h"

namespace canopy::test {

/// A llama, qwen2, qwen3 or qwen3moe GGUF with a tied head; change it before build(). Of the last each row uses 2 of 4
/// experts of width 16.
inline GgufBuilder tiny_gguf(const std::string& architecture = "llama") {
  GgufBuilder b;
  const auto key = [&](const char* name) { return architecture + "." + name; };
  b.text("general.architecture", architecture).text("general.name", "tiny");
  b.value<uint32_t>(key("block_count"), 1).value<uint32_t>(key("context_length"), 64);
  b.value<uint32_t>(key("embedding_length"), 8).value<uint32_t>(key("feed_forward_length"), 16);
  b.value<uint32_t>(key("attention.head_count"), 2).value<uint32_t>(key("attention.head_count_kv"), 1);
  b.value<float>(key("attention.layer_norm_rms_epsilon"), 1e-5f).value<float>(key("rope.freq_base"), 10000.0f);
  b.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  b.texts("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "f", "g", "h", "<s>", "<|im_end|>"});
  b.numbers<int32_t>("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 1, 1, 1, 3, 3});
  b.texts("tokenizer.ggml.merges", {"a b", "c d"});
  b.value<uint32_t>("tokenizer.ggml.bos_token_id", 8).value<uint32_t>("tokenizer.ggml.eos_token_id", 9);
  b.zeros("token_embd.weight", {8, 10}).zeros("output_norm.weight", {8});
  b.zeros("blk.0.attn_norm.weight", {8}).zeros("blk.0.attn_q.weight", {8, 8}).zeros("blk.0.attn_k.weight", {8, 4});
  b.zeros("blk.0.attn_v.weight", {8, 4}).zeros("blk.0.attn_output.weight", {8, 8}).zeros("blk.0.ffn_norm.weight", {8});
  if (architecture == "qwen3moe") {
    b.value<uint32_t>(key("expert_count"), 4).value<uint32_t>(key("expert_used_count"), 2);
    b.value<uint32_t>(key("expert_feed_forward_length"), 16).zeros("blk.0.ffn_gate_inp.weight", {8, 4});
    b.zeros("blk.0.ffn_gate_exps.weight", {8, 16, 4}).zeros("blk.0.ffn_up_exps.weight", {8, 16, 4});
    b.zeros("blk.0.ffn_down_exps.weight", {16, 8, 4});
  } else {
    b.zeros("blk.0.ffn_gate.weight", {8, 16}).zeros("blk.0.ffn_up.weight", {8, 16});
    b.zeros("blk.0.ffn_down.weight", {16, 8});
  }
  if (architecture == "qwen2") {
    b.zeros("blk.0.attn_q.bias", {8}).zeros("blk.0.attn_k.bias", {4}).zeros("blk.0.attn_v.bias", {4});
  }
  if (architecture.starts_with("qwen3"))
    b.zeros("blk.0.attn_q_norm.weight", {4}).zeros("blk.0.attn_k_norm.weight", {4});
  return b;
}

/// The config.json of the same llama model; `extra` is inserted before the closing brace: ",\"key\":1".
inline std::string tiny_config(const std::string& extra = "") {
  return R"({"architectures":["LlamaForCausalLM"],"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,)"
         R"("num_key_value_heads":1,"intermediate_size":16,"vocab_size":10,"max_position_embeddings":64,)"
         R"("rms_norm_eps":1e-5,"rope_theta":10000.0,"tie_word_embeddings":true,"bos_token_id":8,"eos_token_id":9)" +
         extra + "}";
}

/// The weights of the same llama model under Hugging Face's names.
inline SafetensorsBuilder tiny_safetensors() {
  SafetensorsBuilder b;
  b.zeros("model.embed_tokens.weight", {10, 8}).zeros("model.norm.weight", {8});
  const std::string layer = "model.layers.0.";
  b.zeros(layer + "input_layernorm.weight", {8}).zeros(layer + "post_attention_layernorm.weight", {8});
  b.zeros(layer + "self_attn.q_proj.weight", {8, 8}).zeros(layer + "self_attn.k_proj.weight", {4, 8});
  b.zeros(layer + "self_attn.v_proj.weight", {4, 8}).zeros(layer + "self_attn.o_proj.weight", {8, 8});
  b.zeros(layer + "mlp.gate_proj.weight", {16, 8}).zeros(layer + "mlp.up_proj.weight", {16, 8});
  b.zeros(layer + "mlp.down_proj.weight", {8, 16});
  return b;
}

}  // namespace canopy::test
