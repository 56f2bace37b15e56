#include "engine/format/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "engine/base/checked.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/reader.h"
#include "engine/format/foreign_file.h"
#include "engine/format/tensor_extent.h"

namespace canopy {
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
    throw bad_input("The " + std::string(what) + " is " + std::to_string(count) + ", more than the " +
                    std::to_string(reader.remaining()) + " bytes left in the file can hold.");
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
    throw bad_input("The file ends before its data section, which begins at offset " + std::to_string(start) + "." +
                    (shortage.empty() ? "" : " " + shortage));
  }
  for (uint64_t i = 0; i < count; ++i)
    place_aligned(tensors_[i], extents[i], bytes.subspan(start), alignment_, shortage);
  refuse_overlap(tensors_);
}

}  // namespace canopy
