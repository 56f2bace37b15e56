#pragma once
// The smallest complete drafters: hidden 8, 2 heads of 4 over 1 key/value head, ffn 16, two layers, block 4, aux layers
// 0 and 2 of 4 target layers, mask 9 of a vocabulary of 10.

#include <string>

#include "tests/format/gguf_builder.h"
#include "tests/format/safetensors_builder.h"

namespace canopy::test {

/// Metadata that every dialect has, under the name of its architecture.
inline GgufBuilder drafter_keys(const std::string& architecture) {
  GgufBuilder b;
  const auto key = [&](const char* name) { return architecture + "." + name; };
  b.text("general.architecture", architecture).text("general.name", "tiny-drafter");
  b.value<uint32_t>(key("block_count"), 2).value<uint32_t>(key("context_length"), 64);
  b.value<uint32_t>(key("embedding_length"), 8).value<uint32_t>(key("feed_forward_length"), 16);
  b.value<uint32_t>(key("attention.head_count"), 2).value<uint32_t>(key("attention.head_count_kv"), 1);
  b.value<uint32_t>(key("attention.key_length"), 4);
  b.value<float>(key("attention.layer_norm_rms_epsilon"), 1e-5f).value<float>(key("rope.freq_base"), 10000.0f);
  b.value<uint32_t>(key("vocab_size"), 10);
  return b;
}

/// Adds zeros for every tensor; `fc`, `hidden_norm` and `ffn_norm` get the given names.
inline void add_drafter_tensors(GgufBuilder& b, const std::string& fc, const std::string& hidden_norm,
                                const std::string& ffn_norm) {
  b.zeros(fc, {16, 8}).zeros(hidden_norm, {8}).zeros("output_norm.weight", {8});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    b.zeros(layer + "attn_norm.weight", {8}).zeros(layer + ffn_norm, {8});
    b.zeros(layer + "attn_q.weight", {8, 8}).zeros(layer + "attn_k.weight", {8, 4});
    b.zeros(layer + "attn_v.weight", {8, 4}).zeros(layer + "attn_output.weight", {8, 8});
    b.zeros(layer + "attn_q_norm.weight", {4}).zeros(layer + "attn_k_norm.weight", {4});
    b.zeros(layer + "ffn_gate.weight", {8, 16}).zeros(layer + "ffn_up.weight", {8, 16});
    b.zeros(layer + "ffn_down.weight", {16, 8});
  }
}

/// The drafter as llama.cpp's converter writes it.
inline GgufBuilder tiny_drafter_gguf() {
  GgufBuilder b = drafter_keys("dflash");
  b.value<uint32_t>("dflash.block_size", 4).numbers<int32_t>("dflash.target_layers", {1, 3});
  b.value<uint32_t>("tokenizer.ggml.mask_token_id", 9);
  add_drafter_tensors(b, "fc.weight", "enc.output_norm.weight", "ffn_norm.weight");
  return b;
}

/// The drafter as the forks' converters write it.
inline GgufBuilder tiny_fork_drafter(const std::string& architecture = "dflash-draft") {
  GgufBuilder b = drafter_keys(architecture);
  b.value<uint32_t>(architecture + ".dflash.block_size", 4).value<uint32_t>(architecture + ".dflash.mask_token_id", 9);
  b.numbers<int32_t>(architecture + ".dflash.target_layer_ids", {0, 2});
  add_drafter_tensors(b, "dflash.fc.weight", "dflash.hidden_norm.weight", "ffn_norm.weight");
  return b;
}

/// The config.json of the same drafter; `extra` is inserted before the closing brace, `inner` into dflash_config.
inline std::string tiny_drafter_config(const std::string& extra = "", const std::string& inner = "") {
  return R"({"architectures":["DFlashDraftModel"],"hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,)"
         R"("num_key_value_heads":1,"head_dim":4,"intermediate_size":16,"vocab_size":10,"max_position_embeddings":64,)"
         R"("rms_norm_eps":1e-5,"rope_theta":10000.0,"num_target_layers":4,"block_size":4,)"
         R"("dflash_config":{"mask_token_id":9,"target_layer_ids":[0,2])" +
         inner + "}" + extra + "}";
}

/// The same weights under Hugging Face's names.
inline SafetensorsBuilder tiny_drafter_safetensors() {
  SafetensorsBuilder b;
  b.zeros("fc.weight", {8, 16}).zeros("hidden_norm.weight", {8}).zeros("norm.weight", {8});
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    b.zeros(layer + "input_layernorm.weight", {8}).zeros(layer + "post_attention_layernorm.weight", {8});
    b.zeros(layer + "self_attn.q_proj.weight", {8, 8}).zeros(layer + "self_attn.k_proj.weight", {4, 8});
    b.zeros(layer + "self_attn.v_proj.weight", {4, 8}).zeros(layer + "self_attn.o_proj.weight", {8, 8});
    b.zeros(layer + "self_attn.q_norm.weight", {4}).zeros(layer + "self_attn.k_norm.weight", {4});
    b.zeros(layer + "mlp.gate_proj.weight", {16, 8}).zeros(layer + "mlp.up_proj.weight", {16, 8});
    b.zeros(layer + "mlp.down_proj.weight", {8, 16});
  }
  return b;
}

}  // namespace canopy::test
