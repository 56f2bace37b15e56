#pragma once
// safetensors: one file, or the shards that a model.safetensors.index.json lists. Format and its rules: the README of
// huggingface/safetensors; as strict as its reference reader.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/mapped_file.h"
#include "engine/format/tensor.h"

namespace canopy {

class SafetensorsFile {
 public:
  static constexpr uint64_t max_header_bytes = 100'000'000;

  /// Maps and checks a file. Throws bad_input (without the path: callers add it).
  static SafetensorsFile open(const std::filesystem::path& path);
  /// The same on bytes that the caller keeps alive: for tests and fuzzing.
  static SafetensorsFile parse(std::span<const std::byte> bytes);

  const MappedFile& file() const { return file_; }
  /// In the order of their bytes, under the names in the file.
  std::span<const TensorView> tensors() const& { return tensors_; }
  std::span<const TensorView> tensors() && = delete;  // would outlive its file
  /// The header's __metadata__.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  void parse_all(std::span<const std::byte> bytes);

  MappedFile file_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// The weights of a Hugging Face folder: model.safetensors, or else the shards of model.safetensors.index.json.
class SafetensorsFolder {
 public:
  static constexpr size_t max_shards = 1024;

  /// Throws bad_input naming the file concerned.
  static SafetensorsFolder open(const std::filesystem::path& folder);

  std::span<const SafetensorsFile> files() const { return files_; }
  /// All shards' tensors; no name occurs twice.
  std::span<const TensorView> tensors() const& { return tensors_; }
  std::span<const TensorView> tensors() && = delete;  // would outlive its file

 private:
  void add(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& folder, const std::filesystem::path& index);

  std::vector<SafetensorsFile> files_;
  std::vector<TensorView> tensors_;
};

}  // namespace canopy
