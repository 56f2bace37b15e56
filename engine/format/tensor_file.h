#pragma once
// The tensors of a GGUF file or a Hugging Face folder under canonical names, or random ones that stand for those of a
// shape; and the opening of such files for a model or a drafter.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/base/mapped_file.h"
#include "engine/format/architecture.h"
#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/format/model_config.h"
#include "engine/format/model_paths.h"
#include "engine/format/quantization_hf.h"
#include "engine/format/safetensors.h"
#include "engine/format/tensor.h"
#include "engine/format/tensor_names.h"

namespace canopy {

// Tensors of random weights in the types of files, without a file: for measurements of models that are not there.

/// Fills `blocks` with random blocks of `type` whose decoded values lie around 0, about 0.02 on average, with scales
/// that halves hold without becoming subnormal. The same seed gives the same bytes. Throws bad_input for a type
/// without a rule (it has: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q4_K, Q6_K) and where `blocks` are no whole blocks.
void fill_random_blocks(TensorType type, uint64_t seed, std::span<std::byte> blocks);

/// The type of a matrix by its canonical name and columns.
using TypeOfTensor = std::function<TensorType(std::string_view name, uint64_t cols)>;

/// Owns the bytes of its tensors: of each type a pattern of at most kPattern bytes (and a little more), which the
/// tensors of that type begin at different places of and go through again and again.
class RandomTensors {
 public:
  static constexpr uint64_t kPattern = uint64_t{32} << 20;

  /// Matrices have the type that `type_of` gives; vectors, which are norms, are ones in F32. Throws what
  /// fill_random_blocks and RepeatedBytes throw, and bad_input where a row is no whole number of blocks.
  RandomTensors(std::span<const RequiredTensor> wanted, const TypeOfTensor& type_of);

  std::span<const TensorView> tensors() const { return tensors_; }

 private:
  std::map<TensorType, RepeatedBytes> bytes_;
  std::vector<float> ones_, minus_ones_;  // norms and biases, rates of recurrences
  std::vector<TensorView> tensors_;
};

// The tensors of a GGUF file or of a Hugging Face folder under canonical names, and the mapping they lie in: what the
// files of a model and of a drafter have in common. Random tensors, which no file has, stand for those of a shape.

class TensorFile {
 public:
  /// Gives the canonical name of a tensor; names it does not know come back as they are.
  using Rename = std::function<std::string(std::string_view)>;

  TensorFile() = default;
  /// Throws bad_input where two tensors stand for one name.
  TensorFile(GgufFile file, const Rename& canonical);
  /// In messages tensors keep the names that they have in the folder; `names` says what those that are missing would be
  /// called.
  TensorFile(SafetensorsFolder folder, const HfQuantization& quantization, const Rename& canonical, FolderNames names);
  /// Under the names that they have.
  explicit TensorFile(RandomTensors tensors);
  TensorFile(TensorFile&&) noexcept = default;
  TensorFile& operator=(TensorFile&&) noexcept = default;
  TensorFile(const TensorFile&) = delete;  // by_name_ points into tensors_
  TensorFile& operator=(const TensorFile&) = delete;

  /// Puts views of the parts in the place of fused tensors. Throws what with_parts() throws, and bad_input where a file
  /// has a part besides.
  void split(std::span<const FusedTensor> fused);

  /// Puts the matrices of single experts in the place of those that gpt-oss's folders have.
  void separate_experts(const ModelConfig& config);

  /// Puts the matrices of heads in the place of those that files of latent attention have.
  void separate_latent(const ModelConfig& config);

  /// Null for a Hugging Face folder.
  const GgufFile* gguf() const { return std::get_if<GgufFile>(&source_); }

  /// The name for messages of a tensor that may be missing, as the file's other tensors are called.
  std::string shown_name(std::string_view canonical) const;

  /// All tensors in file order.
  std::span<const TensorView> tensors() const { return tensors_; }
  /// Null when there is none of that name.
  const TensorView* find(std::string_view name) const;
  /// The tensor of that name and shape; a vector has rows = 1. Throws with expected and actual shape.
  const TensorView& require(std::string_view name, uint64_t rows, uint64_t cols) const;
  /// require() for each, and a type that can be decoded; vectors, which are norms, must be stored as floats.
  void require_all(std::span<const RequiredTensor> wanted) const;

  /// The method of a quantized folder ("AWQ"), else the type that holds most of the bytes ("" where there are no
  /// tensors); and the elements of all tensors.
  std::string main_type() const;
  uint64_t elements() const;

  /// Throws when a file was shrunk or rewritten since it was opened.
  void check_unchanged() const;

  /// The files that hold the tensors: several for shards and for parts of a split GGUF, none for random tensors.
  std::vector<std::filesystem::path> files() const;

 private:
  std::string prefixed(std::string_view missing) const;
  void take(std::span<const TensorView> found, const Rename& canonical);
  std::vector<const MappedFile*> mappings() const;

  std::variant<std::monostate, GgufFile, SafetensorsFolder, RandomTensors> source_;  // owns the bytes
  std::optional<FolderNames> names_;                                                 // of folders
  std::string_view method_;                                                          // of quantization; empty: none
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;  // views of tensors_[i].name
};

/// The Hugging Face folder that `path` names: a folder, or the one around a .safetensors file. Nothing where it is to
/// be read as a GGUF file.
std::optional<std::filesystem::path> hugging_face_folder(const std::filesystem::path& path);

/// The text of the folder's config.json; throws where there is none.
std::string read_config_json(const std::filesystem::path& folder);

/// Whether what `given` stands for says that it is of a kind: a folder's config.json, parsed, by `is_config`, or a GGUF
/// file's architecture by `is_architecture`. False where nothing can be read.
bool says_it_is(const std::filesystem::path& given, const std::function<bool(const JsonFields&)>& is_config,
                const std::function<bool(std::string_view)>& is_architecture) noexcept;

/// A name for people when the file gives none: that of the file without its extension, or of folder or cached model.
std::string name_from_path(const std::filesystem::path& path);

/// Opens the files of a model or of a drafter by the same rules. Opens what `given` stands for as the State's own kind
/// of model: `state` has the members path and file (TensorFile) and reads its configuration in open_gguf() or
/// open_folder(folder). `config` is its transformer, which learns here what the tensors say of it.
template <class State>
void open_files(const std::filesystem::path& given, State& state, ModelConfig& config) {
  state.path = resolve_model_path(given);
  if (const auto folder = hugging_face_folder(state.path)) {
    state.open_folder(*folder);
  } else {
    state.open_gguf();
  }
  config.quantization = state.file.main_type();
  config.parameters = state.file.elements();
  if (config.name.empty()) config.name = name_from_path(given);
}

}  // namespace canopy
