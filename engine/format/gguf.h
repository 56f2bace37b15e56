#pragma once
// GGUF files, also those split into several parts: read as views into the mapped file, and written.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/format/tensor.h"

namespace canopy {

// GGUF models that are split into several files, as gguf-split and its like write them: "NAME-00002-of-00003.gguf". The
// metadata is in the first part; each has its place in 'split.no', counted from 0, and tensors of its own.

/// What the name of a part says: "m-00002-of-00003.gguf" is {"m", 2, 3}.
struct GgufPartName {
  static constexpr uint32_t most_parts = 1024;

  std::string stem;
  uint32_t number = 1;  // from 1
  uint32_t count = 1;

  /// The file name of another part.
  std::string of_part(uint32_t wanted) const;
};

/// Nothing where the name is not that of a part.
std::optional<GgufPartName> gguf_part_name(std::string_view file_name);

/// By their names alone, the files of the model that `path` is a part of, in order and as far as they exist; only
/// `path` where its name is not that of a part, or no part exists.
std::vector<std::filesystem::path> gguf_part_files(const std::filesystem::path& path);

/// Whether an earlier part than `path` exists, by their names: lists show a model once, by its first file.
bool is_later_gguf_part(const std::filesystem::path& path);

// GGUF files, versions 2 and 3, little-endian (specification: ggml/docs/gguf.md). The file stays mapped; strings,
// arrays and tensors are views into it. Everything is checked when it is opened.

class Reader;

enum class GgufType : uint32_t {
  u8 = 0,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64  // ids of the format
};

/// "u32", "string", ...
std::string_view to_string(GgufType type);

/// One metadata entry. Numbers are widened to the member of their kind.
struct GgufValue {
  std::string_view key;
  GgufType type = GgufType::u8;
  uint64_t unsigned_value = 0;           // u8 ... u64, boolean
  int64_t signed_value = 0;              // i8 ... i64
  double float_value = 0;                // f32, f64
  std::string_view text;                 // string
  GgufType element_type = GgufType::u8;  // array
  uint64_t count = 0;                    // array: elements
  std::span<const std::byte> elements;   // array: as they lie in the file
};

struct GgufLimits {
  static constexpr uint64_t entries = 1ull << 18;  // of metadata, and of tensors
  static constexpr uint64_t string_bytes = 16ull << 20;
  static constexpr uint64_t key_bytes = 65535;  // of the specification
  static constexpr uint64_t name_bytes = 256;   // of a tensor; the specification allows 64
  static constexpr uint64_t max_alignment = 1ull << 20;
  static constexpr int array_depth = 4;  // arrays of arrays are legal, if unused
};

class GgufFile {
 public:
  /// Maps and checks a file, and the other parts where it is one of a split model: the metadata is then
  /// the first part's, the tensors are those of all. Throws bad_input (without the path: callers add it), with the name
  /// of the part where one is missing, of another model, or not what its name says.
  static GgufFile open(const std::filesystem::path& path);
  /// The one file, even if it is a part.
  static GgufFile open_alone(const std::filesystem::path& path);
  /// The same on bytes that the caller keeps alive: for tests and fuzzing.
  static GgufFile parse(std::span<const std::byte> bytes);

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  /// The file, or the parts in order; none after parse().
  std::span<const MappedFile> files() const { return files_; }

  std::span<const GgufValue> metadata() const { return metadata_; }
  /// Tensors under the names in the file, in file order, those of several parts one after the other; shape[0] is the
  /// slowest dimension.
  std::span<const TensorView> tensors() const& { return tensors_; }
  std::span<const TensorView> tensors() && = delete;  // would outlive its file

  /// Null when there is no such key.
  const GgufValue* find(std::string_view key) const;

  // Typed access. Without a fallback the key is required. A value of another type, or out of range, throws an error
  // that names the key, its type and the wanted one. Whole numbers may be stored in any integer type.
  uint32_t u32(std::string_view key) const;
  std::optional<uint32_t> u32_if(std::string_view key) const;
  double number(std::string_view key) const;  // f32 or f64
  std::optional<double> number_if(std::string_view key) const;
  std::optional<bool> boolean_if(std::string_view key) const;
  std::string_view text(std::string_view key) const;
  std::optional<std::string_view> text_if(std::string_view key) const;
  /// Views of an array of strings; empty when there is no such key.
  std::vector<std::string_view> texts(std::string_view key) const;
  /// An array of i32 or u32 values that fit; empty when there is no such key.
  std::vector<int32_t> i32s(std::string_view key) const;
  /// An array of booleans; empty when there is no such key.
  std::vector<bool> booleans(std::string_view key) const;
  /// An array of f32; empty when there is no such key.
  std::vector<float> f32s(std::string_view key) const;

 private:
  void parse_header(Reader& reader, std::span<const std::byte> file, uint64_t& tensor_count, uint64_t& metadata_count);
  void parse_metadata(Reader& reader, uint64_t count);
  void parse_tensors(Reader& reader, uint64_t count, std::span<const std::byte> bytes);
  void parse_all(std::span<const std::byte> bytes);
  /// The parts of one model, in order, which have been checked one by one.
  static GgufFile join(std::vector<GgufFile> parts);

  std::vector<MappedFile> files_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<GgufValue> metadata_;
  std::unordered_map<std::string_view, size_t> keys_;
  std::vector<TensorView> tensors_;
};

// Writes GGUF files, version 3, little-endian (specification: ggml/docs/gguf.md), that GgufFile reads.

/// Collects metadata and tensors in the order they are given. Whoever calls it keeps keys and names apart and within
/// GgufLimits: that is a matter of our own code, not of a user's file.
class GgufWriter {
 public:
  /// Writes a tensor's bytes into exactly the room it is given.
  using Fill = std::function<void(std::span<std::byte> out)>;

  void text(std::string_view key, std::string_view value);
  void u32(std::string_view key, uint32_t value);
  void f32(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void i32s(std::string_view key, std::span<const int32_t> values);
  void f32s(std::string_view key, std::span<const float> values);
  void texts(std::string_view key, std::span<const std::string> values);
  void booleans(std::string_view key, const std::vector<bool>& values);
  /// An entry of another file as it is.
  void copy(const GgufValue& value);

  /// `shape` is row-major, the contiguous dimension last. `fill` is called by write(), for one tensor at a time.
  void tensor(std::string_view name, std::span<const uint64_t> shape, TensorType type, Fill fill);
  /// A tensor whose bytes are written as they are, part after part; they must outlive the writer.
  void tensor(std::string_view name, std::span<const uint64_t> shape, TensorType type,
              std::vector<std::span<const std::byte>> parts);

  uint64_t tensor_count() const { return tensors_.size(); }

  /// The whole file, part by part: no more than one tensor is in memory. Throws what `put` and a fill throw.
  void write(const PutBytes& put) const;
  std::string build() const;

 private:
  struct Tensor {
    std::string header;  // name, dimensions and type; the offset follows
    uint64_t offset = 0;
    uint64_t bytes = 0;
    Fill fill;  // empty: `parts` are written
    std::vector<std::span<const std::byte>> parts;
  };

  Tensor& add(std::string_view name, std::span<const uint64_t> shape, TensorType type);

  void entry(std::string_view key, GgufType type, std::string_view payload);

  std::string metadata_;
  uint64_t metadata_count_ = 0;
  std::vector<Tensor> tensors_;
  uint64_t data_bytes_ = 0;
};

}  // namespace canopy
