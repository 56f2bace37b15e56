#pragma once
// An EAGLE-3 head on disk (Li et al., "EAGLE-3", 2025): a folder as its authors' tools or vLLM's speculators write it,
// or a GGUF file of llama.cpp's architecture eagle3.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor_file.h"

namespace canopy {

struct EagleConfig {
  /// Of its one layer, whose hidden size may be another than the target's. `vocab` is the target's, that of the tokens
  /// that it reads; without special tokens.
  ModelConfig layer;
  uint32_t target_hidden = 0;  // hidden size of the target
  /// Target layers whose outputs are the feature, ascending; files count from 1, as inputs of the layer after. Empty:
  /// the file does not say.
  std::vector<uint32_t> aux_layers;
  bool norm_before_residual = false;  // the residual stream begins with the normed state, not with the state as it is
  bool norm_before_fc = false;        // RMS norm of the whole feature
  bool fc_norm = false;               // RMS norm of each layer's part of the feature (EAGLE 3.1)
  bool norm_output = false;           // the state behind a node is what the last norm gives (EAGLE 3.1)
  /// The tokens that its head is over, ascending; empty: the whole vocabulary.
  std::vector<uint32_t> draft_token_ids;
  uint32_t draft_vocab_size = 0;  // how many the configuration says they are; 0: it does not say
  std::string dialect;            // "EAGLE", "speculators (vLLM)", "eagle3 (llama.cpp)": for messages

  uint32_t taps() const { return aux_layers.empty() ? 3 : static_cast<uint32_t>(aux_layers.size()); }
  uint32_t feature_width() const { return taps() * target_hidden; }
  uint32_t drafted_tokens() const {
    return draft_token_ids.empty() ? layer.vocab : static_cast<uint32_t>(draft_token_ids.size());
  }
  /// Those of the file, or where it names none the outputs before layers 2, n / 2 and n - 3 of so many. Throws
  /// bad_input where a model has too few layers for that.
  std::vector<uint32_t> aux_layers_of(uint32_t target_layers) const;
};

/// Canonical names (H hidden, F width of the feature, V vocabulary, n drafted tokens): fc [H, F]   hidden_norm [H]
/// output_norm [H]   input_norm [F] with norm_before_fc   fc_norm.N [target's H] with fc_norm   those of one layer as
/// in model_file.h, blk.0...., whose attn_norm is the token's and whose attn_q, attn_k and attn_v have 2H columns
/// token_embd [V, H] and output [n, H] where the head has its own.
class EagleFile {
 public:
  /// Opens a .gguf file, a folder with config.json and safetensors, a .safetensors file in one, or one in the cache of
  /// Hugging Face (model_paths.h), and validates all of it. Throws Error(bad_input) with the path in front.
  static EagleFile open(const std::filesystem::path& path);

  /// Whether the metadata at `path` say that it is such a head, however damaged the rest is. False, too, where nothing
  /// can be read.
  static bool is_eagle(const std::filesystem::path& path) noexcept;

  EagleFile(EagleFile&&) noexcept;
  EagleFile& operator=(EagleFile&&) noexcept;
  ~EagleFile();

  const std::filesystem::path& path() const;
  const EagleConfig& config() const;
  /// What its layer computes.
  LayerSpec layer_spec() const;
  /// That of the target, where the file brings it.
  const TokenizerSource& tokenizer() const;
  bool has_own_embedding() const { return find("token_embd") != nullptr; }
  bool has_own_output() const { return find("output") != nullptr; }

  /// All tensors in file order, under canonical names.
  std::span<const TensorView> tensors() const;
  /// Null when there is none of that name.
  const TensorView* find(std::string_view name) const;
  /// The tensor of that name and shape; a vector has rows = 1. Throws with the name in the file and both shapes.
  const TensorView& require(std::string_view name, uint64_t rows, uint64_t cols) const;
  void check_unchanged() const;

 private:
  struct State;
  explicit EagleFile(std::unique_ptr<State> state);
  void validate() const;
  std::vector<RequiredTensor> required() const;
  std::unique_ptr<State> state_;
};

/// Throws bad_input with the reason where a head cannot draft for such a model: another hidden size or vocabulary,
/// layers that the model does not have. Otherwise says what is unusual about the two, one sentence each.
std::vector<std::string> check_pair(const ModelFile& target, const EagleFile& head);

}  // namespace canopy
