#pragma once
// A DFlash drafter, or one of its relatives (JetSpec, DSpark, DFlash2), on disk: opened, compared with the model it is
// to draft for, and written as one GGUF file.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/files.h"
#include "engine/format/drafter_config.h"
#include "engine/format/gguf.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor_file.h"

namespace canopy {

// As the engine sees it: one validated config and tensors under canonical names, from a Hugging Face folder or a GGUF
// file of any dialect. The bytes stay in the mapped file.
//
// Canonical names (H hidden, T aux layers): fc [H, T*H]   hidden_norm [H]   output_norm [H]   and those of the layers
// as in model_file.h: blk.N.attn_norm ... blk.N.ffn_down; output [n, H] where a drafter for n tokens has its own head.
// Of a DFlash2 drafter with T taps in groups of G and a selector of rank R: blk.N.{attn,ffn}_conv_base [2, T, H],
// blk.N.{attn,ffn}_conv_proj [2 T H / G, H], selector_hidden [R, H], selector_predecessor and selector_successor [V,
// R]. Of a DSpark drafter of rank R: markov_w1 [V, R], markov_w2 [V, R] or [n, R], conf_proj [1, H + R], conf_proj.bias
// [1].

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

// Whether a drafter can draft for a model. A wrong pair would still give the model's exact text, since every token is
// verified, but no draft would be accepted; a pair whose sizes differ cannot run at all.

/// Throws bad_input with the reason where the two cannot work together: hidden size, aux layers beyond the model's
/// layers, a stated number of layers or vocabulary that is another, a mask token outside the vocabulary, a config that
/// validate_drafter_config() refuses. Otherwise says, one sentence each, what is unusual about the pair.
std::vector<std::string> check_pair(const ModelConfig& target, const DrafterConfig& drafter);

/// The same, tokenizers compared besides where the drafter brings one.
std::vector<std::string> check_pair(const ModelFile& target, const DrafterFile& drafter);

/// Whether a model can draft for another, token by token: their vocabularies are the same but for tokens that only pad
/// them and special ones that one of them was given later. Throws bad_input with the reason where they are not, and for
/// the model itself. Otherwise says what is unusual about the pair, one sentence each.
std::vector<std::string> check_pair(const ModelFile& target, const ModelFile& draft);

/// One sentence where the drafter's tokenizer has other tokens than the target's; nothing where they agree, or where
/// one of them is missing or cannot be compared.
std::optional<std::string> tokenizer_difference(const TokenizerSource& target, const TokenizerSource& drafter);

// A drafter as one GGUF file in llama.cpp's dialect, whatever it was opened from.

struct DrafterGgufOptions {
  /// Of the matrices: q8_0, f16 or bf16. Norms are F32, and so is a matrix that no block fits into.
  TensorType type = TensorType::q8_0;
  std::string name = {};     // general.name; empty: that of the drafter
  std::string license = {};  // general.license, e.g. "apache-2.0"; empty: that of its GGUF file, if any
  std::string source = {};   // general.description: where the weights come from; empty: likewise
  /// The tokens that its head is to be over, ascending; empty: as the drafter says.
  std::vector<uint32_t> draft_token_ids = {};
  /// Whose tokenizer.* entries are copied: the target's file. Null: those of the drafter's own GGUF file, if it is one.
  const GgufFile* tokenizer = nullptr;
};

/// The bytes of the file: read back, it gives the same config (but for the form of a llama3 rope scaling, which GGUF
/// stores as factors) and the weights in the type asked for. An embedding or head that the drafter brings is left out.
/// Throws bad_input where a value is not finite or too large for the type, the type is another one, or tokens are named
/// for a drafter whose own head is over others.
std::string drafter_gguf(const DrafterFile& drafter, const DrafterGgufOptions& options);
/// The same, part by part.
void write_drafter_gguf(const DrafterFile& drafter, const DrafterGgufOptions& options, const PutBytes& put);

}  // namespace canopy
