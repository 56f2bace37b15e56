#pragma once
// Writes GGUF files, version 3, little-endian (specification: ggml/docs/gguf.md), that GgufFile reads.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/atomic_file.h"
#include "engine/format/gguf.h"

namespace canopy {

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
