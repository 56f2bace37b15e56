#include "engine/format/gguf_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "engine/base/checked.h"
#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr uint64_t alignment = 32;  // the default of the format

template <class T>
requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) std::string little_endian(T value) {
  auto raw = std::bit_cast<std::array<char, sizeof(T)>>(value);
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(raw);
  return {raw.data(), raw.size()};
}

std::string string_bytes(std::string_view text) {
  return little_endian<uint64_t>(text.size()) + std::string(text);
}

std::string array_head(GgufType element, uint64_t count) {
  return little_endian(static_cast<uint32_t>(element)) + little_endian(count);
}

/// The bytes of an entry that follow its type.
std::string payload_of(const GgufValue& value) {
  switch (value.type) {
    case GgufType::u8:
    case GgufType::boolean: return little_endian(static_cast<uint8_t>(value.unsigned_value));
    case GgufType::u16: return little_endian(static_cast<uint16_t>(value.unsigned_value));
    case GgufType::u32: return little_endian(static_cast<uint32_t>(value.unsigned_value));
    case GgufType::u64: return little_endian(value.unsigned_value);
    case GgufType::i8: return little_endian(static_cast<int8_t>(value.signed_value));
    case GgufType::i16: return little_endian(static_cast<int16_t>(value.signed_value));
    case GgufType::i32: return little_endian(static_cast<int32_t>(value.signed_value));
    case GgufType::i64: return little_endian(value.signed_value);
    case GgufType::f32: return little_endian(static_cast<float>(value.float_value));
    case GgufType::f64: return little_endian(value.float_value);
    case GgufType::string: return string_bytes(value.text);
    case GgufType::array: break;
  }
  return array_head(value.element_type, value.count) +
         std::string(reinterpret_cast<const char*>(value.elements.data()), value.elements.size());
}

}  // namespace

void GgufWriter::entry(std::string_view key, GgufType type, std::string_view payload) {
  metadata_ += string_bytes(key) + little_endian(static_cast<uint32_t>(type));
  metadata_ += payload;
  ++metadata_count_;
}

void GgufWriter::text(std::string_view key, std::string_view value) {
  entry(key, GgufType::string, string_bytes(value));
}

void GgufWriter::u32(std::string_view key, uint32_t value) {
  entry(key, GgufType::u32, little_endian(value));
}

void GgufWriter::f32(std::string_view key, float value) {
  entry(key, GgufType::f32, little_endian(value));
}

void GgufWriter::boolean(std::string_view key, bool value) {
  entry(key, GgufType::boolean, little_endian<uint8_t>(value ? 1 : 0));
}

void GgufWriter::i32s(std::string_view key, std::span<const int32_t> values) {
  std::string payload = array_head(GgufType::i32, values.size());
  for (const int32_t value : values) payload += little_endian(value);
  entry(key, GgufType::array, payload);
}

void GgufWriter::f32s(std::string_view key, std::span<const float> values) {
  std::string payload = array_head(GgufType::f32, values.size());
  for (const float value : values) payload += little_endian(value);
  entry(key, GgufType::array, payload);
}

void GgufWriter::texts(std::string_view key, std::span<const std::string> values) {
  std::string payload = array_head(GgufType::string, values.size());
  for (const std::string& value : values) payload += string_bytes(value);
  entry(key, GgufType::array, payload);
}

void GgufWriter::booleans(std::string_view key, const std::vector<bool>& values) {
  std::string payload = array_head(GgufType::boolean, values.size());
  for (const bool value : values) payload += little_endian<uint8_t>(value ? 1 : 0);
  entry(key, GgufType::array, payload);
}

void GgufWriter::copy(const GgufValue& value) {
  entry(value.key, value.type, payload_of(value));
}

GgufWriter::Tensor& GgufWriter::add(std::string_view name, std::span<const uint64_t> shape, TensorType type) {
  Tensor tensor;
  tensor.header = string_bytes(name) + little_endian(static_cast<uint32_t>(shape.size()));
  uint64_t elements = 1;
  for (size_t i = shape.size(); i-- > 0;) {  // the file lists the contiguous dimension first
    tensor.header += little_endian(shape[i]);
    elements = checked_mul(elements, shape[i], "element count of a tensor");
  }
  tensor.header += little_endian(static_cast<uint32_t>(type));
  tensor.offset = data_bytes_;
  tensor.bytes = tensor_bytes(type, elements, name);
  const uint64_t end = checked_add(tensor.offset, tensor.bytes, "size of the tensors");
  data_bytes_ = checked_align_up(end, alignment, "size of the tensors");
  return tensors_.emplace_back(std::move(tensor));
}

void GgufWriter::tensor(std::string_view name, std::span<const uint64_t> shape, TensorType type, Fill fill) {
  add(name, shape, type).fill = std::move(fill);
}

void GgufWriter::tensor(std::string_view name, std::span<const uint64_t> shape, TensorType type,
                        std::vector<std::span<const std::byte>> parts) {
  add(name, shape, type).parts = std::move(parts);
}

void GgufWriter::write(const PutBytes& put) const {
  std::string head = "GGUF" + little_endian<uint32_t>(3) + little_endian<uint64_t>(tensors_.size()) +
                     little_endian(metadata_count_) + metadata_;
  for (const Tensor& tensor : tensors_) head += tensor.header + little_endian(tensor.offset);
  head.resize(checked_align_up<uint64_t>(head.size(), alignment, "size of the file"));
  put(std::as_bytes(std::span(head)));
  const std::array<std::byte, alignment> zeros{};
  for (const Tensor& tensor : tensors_) {
    if (tensor.fill) {
      std::vector<std::byte> bytes(tensor.bytes);
      tensor.fill(bytes);
      put(bytes);
    } else {
      for (const std::span<const std::byte> part : tensor.parts) put(part);
    }
    put(std::span(zeros).first((alignment - tensor.bytes % alignment) % alignment));
  }
}

std::string GgufWriter::build() const {
  std::string file;
  write([&file](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return file;
}

}  // namespace canopy
