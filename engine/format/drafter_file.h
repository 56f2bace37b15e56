#pragma once
// A DFlash drafter on disk as the engine sees it: one validated config and tensors under canonical names, from a
// Hugging Face folder or a GGUF file of any of the dialects in drafter_config_gguf.h. The bytes stay in the mapped
// file.
//
// Canonical names (H hidden, T aux layers): fc [H, T*H]   hidden_norm [H]   output_norm [H]   and those of the layers
// as in model_file.h: blk.N.attn_norm ... blk.N.ffn_down; output [n, H] where a drafter for n tokens has its own head.

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "engine/format/drafter_config.h"
#include "engine/format/model_file.h"
#include "engine/format/random_tensors.h"
#include "engine/format/tensor_file.h"

namespace canopy {

class DrafterFile {
 public:
  /// Opens a .gguf file, a folder with config.json and safetensors, a .safetensors file in one, or a drafter in the
  /// cache of Hugging Face (model_paths.h), and validates all of it. Throws Error(bad_input) with the path in front; a
  /// model that is no drafter, and a drafter of another kind, are named as what they are.
  static DrafterFile open(const std::filesystem::path& path);

  /// A drafter of random weights in the types of files, without a file: for measurements. Throws bad_input for a config
  /// that open() would refuse.
  static DrafterFile of_random_weights(const DrafterConfig& config, const TypeOfTensor& type_of);

  /// Whether the metadata at `path` say that it is a drafter, of whatever kind and however damaged the rest is. False,
  /// too, where nothing can be read.
  static bool is_drafter(const std::filesystem::path& path) noexcept;

  DrafterFile(DrafterFile&&) noexcept;
  DrafterFile& operator=(DrafterFile&&) noexcept;
  ~DrafterFile();

  const std::filesystem::path& path() const;
  const DrafterConfig& config() const;
  /// That of the target it was made for, where the file brings it: to compare with the target's own.
  const TokenizerSource& tokenizer() const;
  /// The tensors and the mapping behind them.
  const TensorFile& file() const;

  /// All tensors in file order, those included that are not used (see DrafterConfig::brings_vocabulary).
  std::span<const TensorView> tensors() const { return file().tensors(); }
  /// Null when there is none of that name.
  const TensorView* find(std::string_view name) const { return file().find(name); }
  /// The tensor of that name and shape; a vector has rows = 1. Throws with expected and actual shape.
  const TensorView& require(std::string_view name, uint64_t rows, uint64_t cols) const {
    return file().require(name, rows, cols);
  }

  /// Every tensor a drafter needs is there, has its shape and a type we can decode, and none is there that the engine
  /// does not know. open() has called it already.
  void validate_tensors() const;

  /// Throws when a file was shrunk or rewritten since it was opened: call it before each large copy.
  void check_unchanged() const { file().check_unchanged(); }

 private:
  struct State;
  explicit DrafterFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace canopy
