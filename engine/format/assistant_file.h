#pragma once
// An assistant of Gemma 4 on disk, which drafts by reading the keys and values of its target: a folder of Hugging Face
// (Gemma4AssistantForCausalLM), or a GGUF file of llama.cpp's architecture gemma4-assistant.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor_file.h"

namespace canopy {

struct AssistantConfig {
  /// Of its layers, which are those of Gemma 4 without keys and values: shared_kv_layers is the number of them all.
  /// `vocab` is the target's.
  ModelConfig layers;
  uint32_t target_hidden = 0;  // hidden size of the target
  bool has_centroids = false;  // the file sorts its tokens by clusters, which are not used
  std::string dialect;         // "Hugging Face", "gemma4-assistant (llama.cpp)": for messages
};

/// Canonical names (H hidden, T hidden size of the target, V vocabulary): pre_projection [H, 2T]   post_projection [T,
/// H]   token_embd [V, H], which is its head   output_norm [H]   those of its layers as in model_file.h, but for
/// attn_k, attn_k_norm and attn_v.
class AssistantFile {
 public:
  /// Opens a .gguf file, a folder with config.json and safetensors, a .safetensors file in one, or one in the cache of
  /// Hugging Face (model_paths.h), and validates all of it. Throws Error(bad_input) with the path in front.
  static AssistantFile open(const std::filesystem::path& path);

  /// Whether the metadata at `path` say that it is one, however damaged the rest is. False, too, where nothing can be
  /// read.
  static bool is_assistant(const std::filesystem::path& path) noexcept;

  AssistantFile(AssistantFile&&) noexcept;
  AssistantFile& operator=(AssistantFile&&) noexcept;
  ~AssistantFile();

  const std::filesystem::path& path() const;
  const AssistantConfig& config() const;
  /// That of the target, where the file brings it.
  const TokenizerSource& tokenizer() const;

  /// All tensors in file order, under canonical names.
  std::span<const TensorView> tensors() const;
  /// The tensor of that name and shape; a vector has rows = 1. Throws with the name in the file and both shapes.
  const TensorView& require(std::string_view name, uint64_t rows, uint64_t cols) const;
  void check_unchanged() const;

 private:
  struct State;
  explicit AssistantFile(std::unique_ptr<State> state);
  void validate() const;
  std::unique_ptr<State> state_;
};

/// The target's layer whose keys and values an assistant's layer reads: its last one with keys and values of its own
/// that has a window where the assistant's has one, and none where it has none. Throws bad_input where there is none.
uint32_t layer_read_by(const ModelConfig& target, const ModelConfig& assistant, uint32_t layer);

/// Throws bad_input with the reason where an assistant cannot draft for such a model: another architecture, hidden size
/// or vocabulary, heads that do not fit the model's keys. Otherwise says what is unusual about the two, one sentence
/// each.
std::vector<std::string> check_pair(const ModelFile& target, const AssistantFile& assistant);

}  // namespace canopy
