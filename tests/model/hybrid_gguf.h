#pragma once
// tiny-qwen3_5, tiny-qwen3_5-moe or tiny-qwen3_next as a GGUF file, written by the rules of llama.cpp's converter:
// value heads in another order but for the last, whose joined inputs are taken apart; norms whole, rates as they are
// used; with a tokenizer that knows letters.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/dequantize.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor_names.h"
#include "tests/format/gguf_builder.h"

namespace canopy::test {

class HybridGguf {
 public:
  /// keeps_inputs: joined, as the converter did at first.
  explicit HybridGguf(const ModelFile& file, bool keeps_inputs = false)
      : file_(file), config_(file.config()), net_(config_.delta_net), keeps_inputs_(keeps_inputs) {}

  std::string convert() {
    write_metadata();
    write_tokenizer();
    for (const TensorView& tensor : file_.tensors()) write(tensor);
    for (const auto& [name, experts] : experts_) {
      put(name + "_exps.weight", {experts.cols, experts.rows / config_.experts, config_.experts}, experts.values);
    }
    return builder_.build();
  }

 private:
  /// [rows, cols] in f32.
  struct Matrix {
    uint64_t rows = 0, cols = 0;
    std::vector<float> values;
  };

  /// Every so many-th layer is one of attention.
  uint32_t attention_step() const {
    return static_cast<uint32_t>(std::ranges::find(config_.recurrent, false) - config_.recurrent.begin()) + 1;
  }

  void write_tokenizer() {
    std::vector<std::string> tokens = {"<|im_start|>", "<|im_end|>"};
    std::vector<int32_t> types = {3, 3};
    for (char c = 'A'; c <= 'z'; ++c) tokens.emplace_back(1, c);
    tokens.emplace_back("ab");
    while (tokens.size() < config_.vocab) tokens.push_back("filler" + std::to_string(tokens.size()));
    types.resize(tokens.size(), 1);
    builder_.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen35");
    builder_.texts("tokenizer.ggml.tokens", tokens).numbers<int32_t>("tokenizer.ggml.token_type", types);
    builder_.texts("tokenizer.ggml.merges", {"a b"});
    builder_.value<uint32_t>("tokenizer.ggml.bos_token_id", 0).value<uint32_t>("tokenizer.ggml.eos_token_id", 1);
    builder_.value<bool>("tokenizer.ggml.add_bos_token", false);
  }

  void write_metadata() {
    GgufBuilder& b = builder_;
    b.text("general.architecture", config_.architecture);
    const auto key = [&](const char* name) { return config_.architecture + "." + name; };
    b.value(key("block_count"), config_.layers).value(key("context_length"), config_.max_context);
    b.value(key("embedding_length"), config_.hidden);
    if (config_.experts == 0) b.value(key("feed_forward_length"), config_.ffn);
    if (config_.experts != 0) {
      b.value(key("expert_count"), config_.experts).value(key("expert_used_count"), config_.experts_used);
      b.value(key("expert_feed_forward_length"), config_.expert_ffn);
      b.value(key("expert_shared_feed_forward_length"), config_.shared_ffn);
    }
    b.value(key("attention.head_count"), config_.heads).value(key("attention.head_count_kv"), config_.kv_heads);
    b.value(key("attention.key_length"), config_.head_dim).value(key("attention.value_length"), config_.head_dim);
    b.value(key("rope.dimension_count"), config_.rotary_dim);
    b.value(key("rope.freq_base"), static_cast<float>(config_.rope_theta));
    b.value(key("attention.layer_norm_rms_epsilon"), config_.rms_eps);
    b.value(key("ssm.conv_kernel"), net_.taps).value(key("ssm.state_size"), net_.key_dim);
    b.value(key("ssm.group_count"), net_.key_heads).value(key("ssm.time_step_rank"), net_.value_heads);
    b.value(key("ssm.inner_size"), net_.values()).value(key("full_attention_interval"), attention_step());
  }

  void write(const TensorView& tensor) {
    Matrix matrix{tensor.rows(), tensor.cols(), std::vector<float>(tensor.elements())};
    dequantize(tensor.type, tensor.bytes, matrix.values);
    if (const std::string_view expert = without_expert(tensor.name); expert != tensor.name) {
      Matrix& all = experts_[std::string(expert)];  // in the order of the file, one below the other
      all.rows += matrix.rows;
      all.cols = matrix.cols;
      all.values.insert(all.values.end(), matrix.values.begin(), matrix.values.end());
      return;
    }
    const size_t dot =
        tensor.name.rfind("ssm_dt") != std::string::npos ? tensor.name.find("ssm_dt") - 1 : tensor.name.rfind('.');
    const std::string kind = dot == std::string::npos ? tensor.name : tensor.name.substr(dot + 1);
    std::string name = tensor.name;
    if (kind == "ssm_in" && !keeps_inputs_) return take_apart(name.substr(0, dot + 1), matrix);
    if (kind.ends_with("_norm") && kind != "ssm_norm") {
      for (float& value : matrix.values) value += 1;
    }
    if (kind == "ffn_norm") name.replace(name.find("ffn_norm"), 8, "post_attention_norm");
    if (kind == "ssm_a") {
      for (float& value : matrix.values) value = -std::exp(value);
    }
    const uint64_t keys = 2 * net_.keys();
    if (kind == "attn_qkv" || kind == "ssm_conv1d") tile_rows(matrix, keys, net_.value_dim);
    if (kind == "attn_gate") tile_rows(matrix, 0, net_.value_dim);
    if (kind == "ssm_beta" || kind == "ssm_alpha") tile_rows(matrix, 0, 1);
    if (kind == "ssm_out") tile_columns(matrix, net_.value_dim);
    if (kind == "ssm_a" || kind == "ssm_dt.bias") tile_columns(matrix, 1);
    const bool is_vector = matrix.rows == 1;  // the gate of a shared expert, too
    if (kind != "ssm_a" && !name.ends_with(".bias")) name += ".weight";
    const std::vector<uint64_t> dimensions =
        is_vector ? std::vector<uint64_t>{matrix.cols} : std::vector<uint64_t>{matrix.cols, matrix.rows};
    put(name, dimensions, matrix.values);
  }

  /// Of each key head a query, a key, values and their gates, below each other: queries, keys and values of all key
  /// heads, and the gates.
  void take_apart(const std::string& layer, const Matrix& matrix) {
    const uint64_t values = net_.value_heads / net_.key_heads * net_.value_dim, each = 2 * net_.key_dim + 2 * values;
    std::vector<float> inputs, gates;
    const auto take = [&](uint64_t first, uint64_t rows, std::vector<float>& to) {
      for (uint64_t key = 0; key < net_.key_heads; ++key) {
        const auto begin = matrix.values.begin() + static_cast<std::ptrdiff_t>((key * each + first) * matrix.cols);
        to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(rows * matrix.cols));
      }
    };
    take(0, net_.key_dim, inputs);
    take(net_.key_dim, net_.key_dim, inputs);
    take(2 * net_.key_dim, values, inputs);
    take(2 * net_.key_dim + values, values, gates);
    put(layer + "attn_qkv.weight", {matrix.cols, inputs.size() / matrix.cols}, inputs);
    put(layer + "attn_gate.weight", {matrix.cols, gates.size() / matrix.cols}, gates);
  }

  void put(const std::string& name, const std::vector<uint64_t>& dimensions, const std::vector<float>& values) {
    builder_.tensor(name, dimensions, TensorType::f32,
                    {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  /// The value head that stands at place h of the file: all first heads of the key heads, then all second ones.
  uint64_t head_at(uint64_t h) const {
    if (config_.architecture == "qwen3next") return h;
    return h % net_.key_heads * (net_.value_heads / net_.key_heads) + h / net_.key_heads;
  }

  void tile_rows(Matrix& matrix, uint64_t first, uint64_t each) const {
    const std::vector<float> before = matrix.values;
    for (uint64_t r = first; r < matrix.rows; ++r) {
      const uint64_t from = first + head_at((r - first) / each) * each + (r - first) % each;
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(from * matrix.cols), matrix.cols,
                  matrix.values.begin() + static_cast<std::ptrdiff_t>(r * matrix.cols));
    }
  }
  void tile_columns(Matrix& matrix, uint64_t each) const {
    const std::vector<float> before = matrix.values;
    for (uint64_t i = 0; i < matrix.values.size(); ++i) {
      const uint64_t c = i % matrix.cols;
      matrix.values[i] = before[i - c + head_at(c / each) * each + c % each];
    }
  }

  const ModelFile& file_;
  const ModelConfig& config_;
  const DeltaNetConfig& net_;
  const bool keeps_inputs_;
  GgufBuilder builder_;
  std::map<std::string, Matrix> experts_;  // of a layer and kind, all experts
};

}  // namespace canopy::test
