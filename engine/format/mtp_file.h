#pragma once
// A head that predicts further tokens of a model (multi-token prediction), on disk: in the model's own file or folder,
// or in a GGUF file beside it.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/model_file.h"
#include "engine/format/tensor_file.h"

namespace canopy {

/// Of qwen35, qwen35moe and glm4moe: one layer of attention as the model's own, over a product of the embedding of a
/// token and the model's hidden state of the position before it.
///
/// Canonical names (H hidden): fc [H, 2H]   embedding_norm [H]   hidden_norm [H]   output_norm [H]   those of one layer
/// as in model_file.h, blk.0....; token_embd [V, H] and output [V, H] only where the head has its own.
class MtpFile {
 public:
  /// Opens what ModelFile::open() opens, whether the model's own layers are there or not, and validates the head alone.
  /// Throws Error(bad_input) with the path in front.
  static MtpFile open(const std::filesystem::path& path);

  /// Whether heads of models of an architecture can be read.
  static bool is_known(std::string_view architecture);
  /// Whether the metadata at `path` say that it is such a head without the layers of its model. False, too, where
  /// nothing can be read.
  static bool is_alone(const std::filesystem::path& path) noexcept;
  /// Whether a model's file brings a head.
  static bool is_in(const ModelFile& model);
  /// Whether what is named as a model's drafter is meant as its head: a head alone, or the same model with one, as its
  /// own file is. Throws what ModelFile::open() throws.
  static bool is_meant(const std::filesystem::path& path, const ModelFile& target);

  MtpFile(MtpFile&&) noexcept;
  MtpFile& operator=(MtpFile&&) noexcept;
  ~MtpFile();

  const std::filesystem::path& path() const;
  /// Of a model of the head's one layer; `parameters` and `quantization` are the head's.
  const ModelConfig& config() const;
  /// Layers of the model it belongs to.
  uint32_t model_layers() const;
  /// That of the model, where the file brings it.
  const TokenizerSource& tokenizer() const;
  bool has_own_embedding() const { return find("token_embd") != nullptr; }
  bool has_own_output() const { return find("output") != nullptr; }

  /// By the canonical names above. Null when there is none of that name.
  const TensorView* find(std::string_view name) const;
  /// The tensor of that name and shape; a vector has rows = 1. Throws with the name in the file and both shapes.
  const TensorView& require(std::string_view name, uint64_t rows, uint64_t cols) const;
  /// Those of the head, in no order.
  std::vector<TensorView> tensors() const;
  void check_unchanged() const;

 private:
  struct State;
  explicit MtpFile(std::unique_ptr<State> state);
  void validate_tensors() const;
  std::unique_ptr<State> state_;
};

/// Throws bad_input with the reason where a head does not belong to such a model: another architecture, number of
/// layers, hidden size or vocabulary. Otherwise says what is unusual about the two, one sentence each.
std::vector<std::string> check_pair(const ModelFile& target, const MtpFile& head);

}  // namespace canopy
