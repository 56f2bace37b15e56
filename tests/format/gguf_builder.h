#pragma once
// Builds GGUF files in memory, right or wrong on purpose.

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/format/gguf.h"

namespace canopy::test {

/// The little-endian bytes of a number.
template <class T>
std::string le(T value) {
  static_assert(std::is_arithmetic_v<T> && std::endian::native == std::endian::little);
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// A GGUF string: length and bytes.
inline std::string gguf_string(std::string_view text) {
  return le<uint64_t>(text.size()) + std::string(text);
}

template <class T>
constexpr GgufType gguf_type_of() {
  if constexpr (std::is_same_v<T, uint8_t>) return GgufType::u8;
  if constexpr (std::is_same_v<T, int8_t>) return GgufType::i8;
  if constexpr (std::is_same_v<T, uint16_t>) return GgufType::u16;
  if constexpr (std::is_same_v<T, int16_t>) return GgufType::i16;
  if constexpr (std::is_same_v<T, uint32_t>) return GgufType::u32;
  if constexpr (std::is_same_v<T, int32_t>) return GgufType::i32;
  if constexpr (std::is_same_v<T, float>) return GgufType::f32;
  if constexpr (std::is_same_v<T, bool>) return GgufType::boolean;
  if constexpr (std::is_same_v<T, uint64_t>) return GgufType::u64;
  if constexpr (std::is_same_v<T, int64_t>) return GgufType::i64;
  if constexpr (std::is_same_v<T, double>) return GgufType::f64;
}

class GgufBuilder {
 public:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dimensions;  // in the file's order, the contiguous one first
    uint32_t type = 0;
    std::string data;
    std::optional<uint64_t> offset;  // a wrong one; empty: the right one
  };

  // Header fields that a test may set to wrong values.
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> tensor_count;
  std::optional<uint64_t> metadata_count;
  uint64_t alignment = 32;
  std::vector<Tensor> tensors;

  /// Adds any entry; `payload` is what follows the type.
  GgufBuilder& raw(std::string_view key, uint32_t type, std::string_view payload) {
    entries_.emplace_back(std::string(key), gguf_string(key) + le(type) + std::string(payload));
    return *this;
  }
  template <class T>
  GgufBuilder& value(std::string_view key, T number) {
    return raw(key, static_cast<uint32_t>(gguf_type_of<T>()), le(number));
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    return raw(key, static_cast<uint32_t>(GgufType::string), gguf_string(value));
  }
  GgufBuilder& array(std::string_view key, GgufType element, uint64_t count, std::string_view elements) {
    return raw(key, static_cast<uint32_t>(GgufType::array),
               le(static_cast<uint32_t>(element)) + le(count) + std::string(elements));
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string elements;
    for (const std::string& value : values) elements += gguf_string(value);
    return array(key, GgufType::string, values.size(), elements);
  }
  template <class T>
  GgufBuilder& numbers(std::string_view key, const std::vector<T>& values) {
    std::string elements;
    for (const T value : values) elements += le(value);
    return array(key, gguf_type_of<T>(), values.size(), elements);
  }
  GgufBuilder& tensor(std::string_view name, std::vector<uint64_t> dimensions, TensorType type, std::string data) {
    tensors.push_back({std::string(name), std::move(dimensions), static_cast<uint32_t>(type), std::move(data), {}});
    return *this;
  }
  /// Adds a tensor of zeros of the right size.
  GgufBuilder& zeros(std::string_view name, std::vector<uint64_t> dimensions, TensorType type = TensorType::f32) {
    uint64_t elements = 1;
    for (const uint64_t extent : dimensions) elements *= extent;
    return tensor(name, std::move(dimensions), type, std::string(tensor_bytes(type, elements, "test"), '\0'));
  }

  /// Removes a metadata entry; setting it again afterwards replaces it.
  GgufBuilder& without(std::string_view key) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.first == key; });
    return *this;
  }
  GgufBuilder& without_tensor(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
    return *this;
  }

  std::string build() const {
    std::string file = magic + le(version) + le<uint64_t>(tensor_count.value_or(tensors.size())) +
                       le<uint64_t>(metadata_count.value_or(entries_.size()));
    for (const auto& [key, bytes] : entries_) file += bytes;
    std::string data;
    for (const Tensor& tensor : tensors) {
      data.resize((data.size() + alignment - 1) / alignment * alignment);
      file += gguf_string(tensor.name) + le(static_cast<uint32_t>(tensor.dimensions.size()));
      for (const uint64_t extent : tensor.dimensions) file += le(extent);
      file += le(tensor.type) + le<uint64_t>(tensor.offset.value_or(data.size()));
      data += tensor.data;
    }
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }

 private:
  std::vector<std::pair<std::string, std::string>> entries_;  // key, bytes
};

/// The bytes of a text, in the type that readers take.
inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace canopy::test
