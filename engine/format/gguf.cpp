#include "engine/format/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <system_error>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/base/text.h"
#include "engine/format/model_paths.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

constexpr const char* count_key = "split.count";
constexpr const char* number_key = "split.no";
constexpr const char* tensors_key = "split.tensors.count";

std::optional<uint32_t> five_digits(std::string_view text) {
  uint32_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != 5 || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string part_of(uint32_t number, uint32_t count) {
  return "part " + std::to_string(number) + " of " + std::to_string(count);
}

/// The name of the file that was opened, which says where the other parts are.
GgufPartName name_of_opened(const GgufFile& file, const fs::path& path, uint32_t count) {
  if (count > GgufPartName::most_parts) {
    throw bad_input("The metadata '" + std::string(count_key) + "' is " + std::to_string(count) + "; at most " +
                    std::to_string(GgufPartName::most_parts) + " parts are allowed.");
  }
  const uint64_t number = uint64_t{file.u32(number_key)} + 1;
  if (number > count) {
    throw bad_input("The metadata '" + std::string(number_key) + "' is " + std::to_string(number - 1) +
                    "; a model of " + std::to_string(count) + " parts has those from 0 to " +
                    std::to_string(count - 1) + ".");
  }
  const auto name = gguf_part_name(path.filename().string());
  const auto place = static_cast<uint32_t>(number);
  if (name && name->number == place && name->count == count) return *name;
  throw bad_input("This is " + part_of(place, count) + " of a split model, but its name is " +
                  quoted_name(path.filename().string()) +
                  ", so that the others cannot be found: the name must end in '" +
                  GgufPartName{"", place, count}.of_part(place) + "'.");
}

/// Throws where a file is not the part of the model that its name says; `first` is any part that was opened before.
void check_part(const GgufFile& part, uint32_t number, uint32_t count, const GgufFile& first) {
  const auto refuse = [&](const std::string& why) {
    throw bad_input("This is not " + part_of(number, count) + " of the model: " + why);
  };
  const auto own_count = part.u32_if(count_key);
  if (!own_count || *own_count <= 1) refuse("it is no part of a split model, as it has no 'split.count'.");
  if (*own_count != count) refuse("it is of a model of " + std::to_string(*own_count) + " parts.");
  if (const uint64_t own = uint64_t{part.u32(number_key)} + 1; own != number) {
    refuse("its 'split.no' is that of part " + std::to_string(own) + "; files were renamed or exchanged.");
  }
  const auto tensors = part.u32_if(tensors_key), expected = first.u32_if(tensors_key);
  if (tensors && expected && *tensors != *expected) {
    refuse("it is of a model of " + std::to_string(*tensors) + " tensors, the others are of one of " +
           std::to_string(*expected) + ".");
  }
  for (const char* key : {"general.architecture", "general.name"}) {
    const auto own = part.text_if(key), other = first.text_if(key);
    if (own && other && *own != *other) {
      refuse("its '" + std::string(key) + "' is " + quoted_name(*own) + ", that of the others " + quoted_name(*other) +
             ".");
    }
  }
}

GgufFile open_part(const fs::path& path, uint32_t number, uint32_t count) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw bad_input("The file does not exist; it is " + part_of(number, count) +
                    " of the model, all of which are needed.");
  }
  return GgufFile::open_alone(path);
}

}  // namespace

std::string GgufPartName::of_part(uint32_t wanted) const {
  char ending[40];
  std::snprintf(ending, sizeof ending, "-%05u-of-%05u.gguf", wanted, count);
  return stem + ending;
}

std::optional<GgufPartName> gguf_part_name(std::string_view file_name) {
  constexpr std::string_view extension = ".gguf", between = "-of-";
  constexpr size_t digits = 5, ending = 1 + digits + between.size() + digits + extension.size();
  if (file_name.size() <= ending || !file_name.ends_with(extension)) return std::nullopt;
  const std::string_view end = file_name.substr(file_name.size() - ending);
  const auto number = five_digits(end.substr(1, digits));
  const auto count = five_digits(end.substr(1 + digits + between.size(), digits));
  if (end.front() != '-' || end.substr(1 + digits, between.size()) != between || !number || !count) return std::nullopt;
  if (*number < 1 || *number > *count || *count > GgufPartName::most_parts) return std::nullopt;
  return GgufPartName{std::string(file_name.substr(0, file_name.size() - ending)), *number, *count};
}

std::vector<fs::path> gguf_part_files(const fs::path& path) {
  std::vector<fs::path> files;
  const auto name = gguf_part_name(path.filename().string());
  for (uint32_t number = 1; name && number <= name->count; ++number) {
    const fs::path part = path.parent_path() / name->of_part(number);
    std::error_code ignored;
    if (fs::exists(part, ignored)) files.push_back(part);
  }
  if (files.empty()) files.push_back(path);
  return files;
}

bool is_later_gguf_part(const fs::path& path) {
  const auto name = gguf_part_name(path.filename().string());
  for (uint32_t number = 1; name && number < name->number; ++number) {
    std::error_code ignored;
    if (fs::exists(path.parent_path() / name->of_part(number), ignored)) return true;
  }
  return false;
}

GgufFile GgufFile::open(const fs::path& path) {
  GgufFile opened = open_alone(path);
  const uint32_t count = opened.u32_if(count_key).value_or(1);
  if (count <= 1) return opened;
  const GgufPartName name = name_of_opened(opened, path, count);
  std::vector<GgufFile> parts;
  for (uint32_t number = 1; number <= count; ++number) {
    const std::string file_name = name.of_part(number);
    with_context(printable(file_name), [&] {
      const fs::path part = path.parent_path() / file_name;
      parts.push_back(number == name.number ? std::move(opened) : open_part(part, number, count));
      check_part(parts.back(), number, count, parts.front());
    });
  }
  return join(std::move(parts));
}

GgufFile GgufFile::join(std::vector<GgufFile> parts) {
  GgufFile whole = std::move(parts.front());
  std::unordered_map<std::string, size_t> owners;
  for (const TensorView& tensor : whole.tensors_) owners.emplace(tensor.name, 0);
  const auto file_name = [&](size_t part) { return quoted_name(whole.files_[part].path().filename().string()); };
  for (size_t i = 1; i < parts.size(); ++i) {
    whole.files_.push_back(std::move(parts[i].files_.front()));
    for (TensorView& tensor : parts[i].tensors_) {
      const auto [owner, is_new] = owners.emplace(tensor.name, i);
      if (!is_new) {
        throw bad_input("The tensor " + quoted_name(tensor.name) + " is in two parts, " + file_name(owner->second) +
                        " and " + file_name(i) + ".");
      }
      whole.tensors_.push_back(std::move(tensor));
    }
    if (whole.tensors_.size() > GgufLimits::entries) {
      throw bad_input("The parts have more than " + std::to_string(GgufLimits::entries) + " tensors.");
    }
  }
  const uint32_t expected = whole.u32(tensors_key);
  if (whole.tensors_.size() != expected) {
    throw bad_input("The " + std::to_string(parts.size()) + " parts have " + std::to_string(whole.tensors_.size()) +
                    " tensors together, but '" + tensors_key + "' is " + std::to_string(expected) +
                    ": one of them is of another model.");
  }
  return whole;
}

namespace {

using Type = GgufType;

// The fewest bytes of an entry: what bounds a count before anything is reserved for it.
constexpr uint64_t min_metadata_bytes = 8 + 1 + 4 + 1;        // key length, key, type, value
constexpr uint64_t min_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8;  // name length, name, rank, dimension, type, offset

/// Bytes of a value of this type in the file; 0 for strings and arrays, whose sizes vary.
uint64_t fixed_size(Type type) {
  switch (type) {
    case Type::u8:
    case Type::i8:
    case Type::boolean: return 1;
    case Type::u16:
    case Type::i16: return 2;
    case Type::u32:
    case Type::i32:
    case Type::f32: return 4;
    case Type::u64:
    case Type::i64:
    case Type::f64: return 8;
    case Type::string:
    case Type::array: return 0;
  }
  return 0;
}

Type read_type(Reader& reader, const std::string& owner) {
  const uint64_t place = reader.offset();
  const auto id = reader.read<uint32_t>("the type of " + owner);
  if (id > static_cast<uint32_t>(Type::f64)) {
    throw bad_input("The type of " + owner + " at offset " + std::to_string(place) + " is " + std::to_string(id) +
                    "; types go from 0 to 12.");
  }
  return static_cast<Type>(id);
}

std::string_view read_string(Reader& reader, uint64_t max_bytes, const std::string& field) {
  const uint64_t place = reader.offset();
  const auto length = reader.read<uint64_t>(field);  // no text is put together here: there may be 10^5 strings
  if (length > max_bytes) {
    throw bad_input("The length of " + field + " at offset " + std::to_string(place) + " is " + std::to_string(length) +
                    " bytes; at most " + std::to_string(max_bytes) + " are allowed.");
  }
  return reader.text(length, field);
}

uint8_t read_bool(Reader& reader, const std::string& owner) {
  const uint64_t place = reader.offset();
  const auto value = reader.read<uint8_t>(owner);
  if (value > 1) {
    throw bad_input("The boolean " + owner + " at offset " + std::to_string(place) + " is " + std::to_string(value) +
                    "; only 0 and 1 are allowed.");
  }
  return value;
}

void read_array(Reader& reader, GgufValue& value, const std::string& owner, int depth);

/// Walks over the elements of an array whose sizes vary, checking them.
void walk_elements(Reader& reader, Type type, uint64_t count, const std::string& owner, int depth) {
  if (type == Type::string) {
    const std::string field = "a string of " + owner;
    for (uint64_t i = 0; i < count; ++i) read_string(reader, GgufLimits::string_bytes, field);
    return;
  }
  for (uint64_t i = 0; i < count; ++i) {
    GgufValue inner;
    read_array(reader, inner, owner, depth + 1);
  }
}

void read_array(Reader& reader, GgufValue& value, const std::string& owner, int depth) {
  if (depth > GgufLimits::array_depth) {
    throw bad_input("Arrays in " + owner + " are nested more than " + std::to_string(GgufLimits::array_depth) +
                    " levels deep.");
  }
  value.element_type = read_type(reader, "the elements of " + owner);
  const uint64_t place = reader.offset();
  value.count = reader.read<uint64_t>("the element count of " + owner);
  const uint64_t size = fixed_size(value.element_type);
  const uint64_t smallest = size != 0 ? size : value.element_type == Type::string ? 8 : 12;
  if (value.count > reader.remaining() / smallest) {
    throw bad_input("The element count of " + owner + " at offset " + std::to_string(place) + " is " +
                    std::to_string(value.count) + ", more than the " + std::to_string(reader.remaining()) +
                    " bytes left in the file can hold.");
  }
  if (size != 0) {
    value.elements = reader.bytes(value.count * size, owner);  // bounded by the check above
    return;
  }
  Reader walker = reader;
  const uint64_t begin = reader.offset();
  walk_elements(walker, value.element_type, value.count, owner, depth);
  value.elements = reader.bytes(walker.offset() - begin, owner);
}

void read_value(Reader& reader, GgufValue& value, const std::string& owner) {
  switch (value.type) {
    case Type::u8: value.unsigned_value = reader.read<uint8_t>(owner); break;
    case Type::i8: value.signed_value = reader.read<int8_t>(owner); break;
    case Type::u16: value.unsigned_value = reader.read<uint16_t>(owner); break;
    case Type::i16: value.signed_value = reader.read<int16_t>(owner); break;
    case Type::u32: value.unsigned_value = reader.read<uint32_t>(owner); break;
    case Type::i32: value.signed_value = reader.read<int32_t>(owner); break;
    case Type::f32: value.float_value = reader.read<float>(owner); break;
    case Type::boolean: value.unsigned_value = read_bool(reader, owner); break;
    case Type::string: value.text = read_string(reader, GgufLimits::string_bytes, owner); break;
    case Type::array: read_array(reader, value, owner, 1); break;
    case Type::u64: value.unsigned_value = reader.read<uint64_t>(owner); break;
    case Type::i64: value.signed_value = reader.read<int64_t>(owner); break;
    case Type::f64: value.float_value = reader.read<double>(owner); break;
  }
}

/// Where a tensor lies: counted from the beginning of the data section, in bytes.
struct Extent {
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// Reads one entry of the tensor list; `bytes` is filled later, from the extent returned.
Extent read_tensor(Reader& reader, TensorView& tensor, uint64_t index) {
  const std::string ordinal = "tensor " + std::to_string(index);
  tensor.name = read_string(reader, GgufLimits::name_bytes, "the name of " + ordinal);
  if (tensor.name.empty()) throw bad_input("The name of " + ordinal + " is empty.");
  const std::string owner = "tensor " + quoted_name(tensor.name);
  const auto rank = reader.read<uint32_t>("the dimension count of " + owner);
  if (rank == 0 || rank > TensorView::max_rank) {
    throw bad_input("The " + owner + " has " + std::to_string(rank) + " dimensions; 1 to 4 are allowed.");
  }
  std::vector<uint64_t> shape(rank);
  for (uint32_t i = 0; i < rank; ++i) {
    const auto dimension = reader.read<uint64_t>("a dimension of " + owner);
    if (dimension == 0) throw bad_input("Dimension " + std::to_string(i) + " of " + owner + " is 0.");
    shape[rank - 1 - i] = dimension;  // the file lists the contiguous dimension first
  }
  const auto id = reader.read<uint32_t>("the type of " + owner);
  const auto type = tensor_type_from_ggml(id);
  if (!type) throw bad_input("The " + owner + " has the unknown type " + std::to_string(id) + ".");
  tensor.type = *type;
  tensor_bytes(tensor.type, shape.back(), "row of " + owner);  // a block may not cross rows
  const uint64_t size = set_shape(tensor, shape, owner);
  return {reader.read<uint64_t>("the offset of " + owner), size};
}

/// The size of a file whose data section begins at `start`; nothing where it would be absurd.
std::optional<uint64_t> whole_size(std::span<const Extent> extents, uint64_t start) {
  uint64_t end = start;
  for (const Extent& extent : extents) {
    constexpr uint64_t most = uint64_t{1} << 60;
    if (extent.offset > most || extent.size > most) return std::nullopt;
    end = std::max(end, start + extent.offset + extent.size);
  }
  return end;
}

void place_aligned(TensorView& tensor, const Extent& extent, std::span<const std::byte> data, uint64_t alignment,
                   const std::string& shortage) {
  const std::string owner = "tensor " + quoted_name(tensor.name);
  if (extent.offset % alignment != 0) {
    throw bad_input("The offset of " + owner + " is " + std::to_string(extent.offset) +
                    ", no multiple of the alignment " + std::to_string(alignment) + ".");
  }
  place_tensor(tensor, extent.offset, extent.size, data, owner, shortage);
}

void refuse_overlap(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  order.reserve(tensors.size());
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const TensorView* tensor) { return tensor->bytes.data(); });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorView& before = *order[i - 1];
    if (before.bytes.data() + before.bytes.size() > order[i]->bytes.data()) {
      throw bad_input("The tensors " + quoted_name(before.name) + " and " + quoted_name(order[i]->name) + " overlap.");
    }
  }
}

}  // namespace

std::string_view to_string(GgufType type) {
  static constexpr std::string_view names[] = {"u8",      "i8",     "u16",   "i16", "u32", "i32", "f32",
                                               "boolean", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<size_t>(type)];
}

GgufFile GgufFile::open_alone(const std::filesystem::path& path) {
  GgufFile result;
  result.files_.push_back(MappedFile::open(path));
  result.files_.front().read_checked([&](std::span<const std::byte> bytes) { result.parse_all(bytes); });
  return result;
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes) {
  GgufFile result;
  result.parse_all(bytes);
  return result;
}

void GgufFile::parse_all(std::span<const std::byte> bytes) {
  refuse_lfs_pointer(bytes);
  Reader reader(bytes);
  uint64_t tensor_count = 0;
  uint64_t metadata_count = 0;
  parse_header(reader, bytes, tensor_count, metadata_count);
  parse_metadata(reader, metadata_count);
  parse_tensors(reader, tensor_count, bytes);
}

void GgufFile::parse_header(Reader& reader, std::span<const std::byte> file, uint64_t& tensor_count,
                            uint64_t& metadata_count) {
  const std::string_view magic = reader.text(4, "the magic");
  if (magic == "FUGG") throw bad_input("This is a big-endian GGUF file; only little-endian files can be read.");
  if (magic != "GGUF") {
    const std::string foreign = explain_foreign_file(file);
    throw bad_input("This is no GGUF file: it begins with '" + printable(magic) + "'." +
                    (foreign.empty() ? "" : " " + foreign));
  }
  version_ = reader.read<uint32_t>("the version");
  // A big-endian writer keeps the magic's bytes and swaps everything else.
  if (version_ != 0 && (version_ & 0xffff) == 0) {
    throw bad_input("This is a big-endian GGUF file; only little-endian files can be read.");
  }
  if (version_ != 2 && version_ != 3) {
    throw bad_input("The GGUF version is " + std::to_string(version_) + "; versions 2 and 3 can be read.");
  }
  tensor_count = reader.read<uint64_t>("the tensor count");
  metadata_count = reader.read<uint64_t>("the metadata count");
  const auto bound = [&](uint64_t count, uint64_t smallest, std::string_view what) {
    if (count > GgufLimits::entries) {
      throw bad_input("The " + std::string(what) + " is " + std::to_string(count) + "; at most " +
                      std::to_string(GgufLimits::entries) + " is allowed.");
    }
    if (count <= reader.remaining() / smallest) return;
    throw bad_input(std::string(kIncomplete) + " The " + std::string(what) + " is " + std::to_string(count) +
                    ", more than the " + std::to_string(reader.remaining()) + " bytes left in the file can hold.");
  };
  bound(tensor_count, min_tensor_bytes, "tensor count");
  bound(metadata_count, min_metadata_bytes, "metadata count");
}

void GgufFile::parse_metadata(Reader& reader, uint64_t count) {
  metadata_.reserve(count);
  keys_.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    GgufValue value;
    const uint64_t place = reader.offset();
    value.key = read_string(reader, GgufLimits::key_bytes, "metadata key " + std::to_string(i));
    if (value.key.empty()) {
      throw bad_input("Metadata key " + std::to_string(i) + " at offset " + std::to_string(place) + " is empty.");
    }
    const std::string owner = "metadata " + quoted_name(value.key);
    if (!keys_.emplace(value.key, metadata_.size()).second) {
      throw bad_input("The " + owner + " at offset " + std::to_string(place) + " is there twice.");
    }
    value.type = read_type(reader, owner);
    read_value(reader, value, owner);
    metadata_.push_back(value);
  }
  if (const auto alignment = u32_if("general.alignment")) {
    if (*alignment < 8 || *alignment > GgufLimits::max_alignment || !std::has_single_bit(*alignment)) {
      throw bad_input("The metadata 'general.alignment' is " + std::to_string(*alignment) +
                      "; it must be a power of two from 8 to " + std::to_string(GgufLimits::max_alignment) + ".");
    }
    alignment_ = *alignment;
  }
}

void GgufFile::parse_tensors(Reader& reader, uint64_t count, std::span<const std::byte> bytes) {
  tensors_.resize(count);
  std::vector<Extent> extents(count);
  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    extents[i] = read_tensor(reader, tensors_[i], i);
    if (!names.insert(tensors_[i].name).second) {
      throw bad_input("There are two tensors of the name " + quoted_name(tensors_[i].name) + ".");
    }
  }
  if (count == 0) return;  // a vocabulary only: there need be no data section
  const uint64_t start = checked_align_up(reader.offset(), alignment_, "offset of the data section");
  const auto whole = whole_size(extents, start);
  const std::string shortage = whole ? explain_incomplete(bytes.size(), *whole) : "";
  if (start > bytes.size()) {
    throw bad_input((shortage.empty() ? "" : shortage + " ") +
                    "The file ends before its data section, which begins at offset " + std::to_string(start) + ".");
  }
  for (uint64_t i = 0; i < count; ++i)
    place_aligned(tensors_[i], extents[i], bytes.subspan(start), alignment_, shortage);
  refuse_overlap(tensors_);
}

// Typed access to GGUF metadata.

namespace {

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
