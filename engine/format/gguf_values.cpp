// Typed access to GGUF metadata.

#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/reader.h"
#include "engine/format/gguf.h"

namespace canopy {
namespace {

using Type = GgufType;

std::string type_of(const GgufValue& value) {
  if (value.type != Type::array) return std::string(to_string(value.type));
  return "an array of " + std::string(to_string(value.element_type));
}

[[noreturn]] void fail_type(const GgufValue& value, std::string_view wanted) {
  throw bad_input("The metadata " + quoted_name(value.key) + " is of type " + type_of(value) + "; " +
                  std::string(wanted) + " is expected.");
}

[[noreturn]] void fail_missing(std::string_view key) {
  throw bad_input("The metadata " + quoted_name(key) + " is missing.");
}

[[noreturn]] void fail_range(const GgufValue& value, const std::string& actual) {
  throw bad_input("The metadata " + quoted_name(value.key) + " is " + actual + "; a whole number from 0 to " +
                  std::to_string(std::numeric_limits<uint32_t>::max()) + " is expected.");
}

uint32_t to_u32(const GgufValue& value) {
  switch (value.type) {
    case Type::u8:
    case Type::u16:
    case Type::u32:
    case Type::u64:
      if (std::in_range<uint32_t>(value.unsigned_value)) return static_cast<uint32_t>(value.unsigned_value);
      fail_range(value, std::to_string(value.unsigned_value));
    case Type::i8:
    case Type::i16:
    case Type::i32:
    case Type::i64:
      if (std::in_range<uint32_t>(value.signed_value)) return static_cast<uint32_t>(value.signed_value);
      fail_range(value, std::to_string(value.signed_value));
    default: fail_type(value, "a whole number");
  }
}

const GgufValue* find_array(const GgufFile& file, std::string_view key, std::string_view wanted,
                            std::initializer_list<Type> element_types) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return nullptr;
  if (value->type != Type::array) fail_type(*value, wanted);
  for (const Type type : element_types) {
    if (value->element_type == type) return value;
  }
  fail_type(*value, wanted);
}

}  // namespace

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &metadata_[found->second];
}

std::optional<uint32_t> GgufFile::u32_if(std::string_view key) const {
  const GgufValue* value = find(key);
  return value == nullptr ? std::nullopt : std::optional(to_u32(*value));
}

uint32_t GgufFile::u32(std::string_view key) const {
  if (const auto value = u32_if(key)) return *value;
  fail_missing(key);
}

std::optional<double> GgufFile::number_if(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != Type::f32 && value->type != Type::f64) fail_type(*value, "f32 or f64");
  return value->float_value;
}

double GgufFile::number(std::string_view key) const {
  if (const auto value = number_if(key)) return *value;
  fail_missing(key);
}

std::optional<bool> GgufFile::boolean_if(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != Type::boolean) fail_type(*value, "boolean");
  return value->unsigned_value != 0;
}

std::optional<std::string_view> GgufFile::text_if(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != Type::string) fail_type(*value, "string");
  return value->text;
}

std::string_view GgufFile::text(std::string_view key) const {
  if (const auto value = text_if(key)) return *value;
  fail_missing(key);
}

std::vector<std::string_view> GgufFile::texts(std::string_view key) const {
  const GgufValue* value = find_array(*this, key, "an array of string", {Type::string});
  if (value == nullptr) return {};
  std::vector<std::string_view> result;
  result.reserve(value->count);  // every string was walked over when the file was opened
  Reader reader(value->elements);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto length = reader.read<uint64_t>("a string's length");
    result.push_back(reader.text(length, "a string"));
  }
  return result;
}

std::vector<int32_t> GgufFile::i32s(std::string_view key) const {
  const GgufValue* value = find_array(*this, key, "an array of i32", {Type::i32, Type::u32});
  if (value == nullptr) return {};
  std::vector<int32_t> result;
  result.reserve(value->count);
  Reader reader(value->elements);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto element = reader.read<int32_t>("an element");
    if (value->element_type == Type::u32 && element < 0) {
      throw bad_input("Element " + std::to_string(i) + " of the metadata " + quoted_name(key) + " is " +
                      std::to_string(static_cast<uint32_t>(element)) + "; at most " +
                      std::to_string(std::numeric_limits<int32_t>::max()) + " is allowed.");
    }
    result.push_back(element);
  }
  return result;
}

std::vector<bool> GgufFile::booleans(std::string_view key) const {
  const GgufValue* value = find_array(*this, key, "an array of boolean", {Type::boolean});
  if (value == nullptr) return {};
  std::vector<bool> result;
  result.reserve(value->count);
  Reader reader(value->elements);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto element = reader.read<uint8_t>("an element");
    if (element > 1) {
      throw bad_input("Element " + std::to_string(i) + " of the metadata " + quoted_name(key) + " is " +
                      std::to_string(element) + "; only 0 and 1 are allowed.");
    }
    result.push_back(element != 0);
  }
  return result;
}

std::vector<float> GgufFile::f32s(std::string_view key) const {
  const GgufValue* value = find_array(*this, key, "an array of f32", {Type::f32});
  if (value == nullptr) return {};
  std::vector<float> result;
  result.reserve(value->count);
  Reader reader(value->elements);
  for (uint64_t i = 0; i < value->count; ++i) result.push_back(reader.read<float>("an element"));
  return result;
}

}  // namespace canopy
