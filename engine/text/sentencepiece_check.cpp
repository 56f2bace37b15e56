#include "engine/text/sentencepiece_check.h"

#include <cstdint>
#include <optional>

#include "engine/base/error.h"
#include "engine/text/compiled_normalizer.h"

namespace canopy {
namespace {

// Protocol Buffers: a message is a run of fields, each a tag (number << 3 | kind) and a value.
struct Field {
  uint64_t number = 0;
  std::string_view bytes;  // of a field with a length; empty for other kinds
};

constexpr uint64_t normalizer_fields[] = {3, 5};  // ModelProto: normalizer_spec, denormalizer_spec
constexpr uint64_t compiled_table_field = 2;      // NormalizerSpec: precompiled_charsmap

std::optional<uint64_t> take_varint(std::string_view& message) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !message.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(message.front());
    message.remove_prefix(1);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// The next field; absent at the end and where the message is damaged, which the library finds by itself.
std::optional<Field> take_field(std::string_view& message) {
  const auto tag = take_varint(message);
  if (!tag) return std::nullopt;
  // Tags are 32 bits: what lies above is dropped here as the library drops it.
  Field field{(*tag & 0xFFFFFFFFu) >> 3, {}};
  switch (*tag & 7) {
    case 0: return take_varint(message) ? std::optional(field) : std::nullopt;
    case 1:
    case 5: {
      const size_t size = (*tag & 7) == 1 ? 8 : 4;
      if (message.size() < size) return std::nullopt;
      message.remove_prefix(size);
      return field;
    }
    case 2: {
      const auto size = take_varint(message);
      if (!size || *size > message.size()) return std::nullopt;
      field.bytes = message.substr(0, *size);
      message.remove_prefix(*size);
      return field;
    }
    default: return std::nullopt;  // groups, which these messages do not have
  }
}

}  // namespace

void check_compiled_normalizers(std::string_view model) {
  while (const auto field = take_field(model)) {
    if (field->number != normalizer_fields[0] && field->number != normalizer_fields[1]) continue;
    std::string_view spec = field->bytes;
    while (const auto inner = take_field(spec)) {
      if (inner->number == compiled_table_field && !inner->bytes.empty()) {
        const CompiledNormalizer checked(inner->bytes, "tokenizer.model");
      }
    }
    // What is not understood here may be skipped by the library, which goes on behind it.
    if (!spec.empty()) throw bad_input("tokenizer.model is damaged: its normalizer does not end with a whole field.");
  }
  if (!model.empty()) throw bad_input("tokenizer.model is damaged: it does not end with a whole field.");
}

}  // namespace canopy
