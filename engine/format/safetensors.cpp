#include "engine/format/safetensors.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/format/model_paths.h"
#include "engine/format/tensor.h"
#include "engine/format/tensor_names.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Where a tensor's bytes lie in the data section, [begin, end).
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

const json& field_of(const json& entry, const char* field, const std::string& owner) {
  const auto found = entry.find(field);
  if (found == entry.end()) throw bad_input("The " + owner + " lacks the field '" + field + "'.");
  return *found;
}

std::vector<uint64_t> whole_numbers(const json& list, const char* field, const std::string& owner) {
  const auto fail = [&] {
    throw bad_input("The field '" + std::string(field) + "' of " + owner + " must be a list of whole numbers from 0.");
  };
  if (!list.is_array()) fail();
  std::vector<uint64_t> result;
  for (const json& number : list) {
    if (!number.is_number_unsigned()) fail();
    result.push_back(number.get<uint64_t>());
  }
  return result;
}

TensorType read_dtype(const json& entry, const std::string& owner) {
  const json& dtype = field_of(entry, "dtype", owner);
  if (!dtype.is_string()) throw bad_input("The field 'dtype' of " + owner + " must be a string.");
  const auto& name = dtype.get_ref<const std::string&>();
  if (const auto type = tensor_type_from_safetensors(name)) return *type;
  throw bad_input("The " + owner + " has the unknown dtype " + quoted_name(name) + ".");
}

/// The leading ones multiplied into one, so that there are no more than a view has.
void join_leading(std::vector<uint64_t>& shape, const std::string& owner) {
  if (shape.size() <= TensorView::max_rank) return;
  const size_t joined = shape.size() - TensorView::max_rank;
  for (size_t i = 0; i < joined; ++i) {
    shape[joined] = checked_mul(shape[joined], shape[i], "element count of " + owner);
  }
  shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(joined));
}

TensorView read_entry(const std::string& name, const json& entry, ByteRange& extent) {
  const std::string owner = "tensor " + quoted_name(name);
  if (!entry.is_object()) throw bad_input("The entry of " + owner + " is no object.");
  TensorView tensor;
  tensor.name = name;
  tensor.type = read_dtype(entry, owner);
  auto shape = whole_numbers(field_of(entry, "shape", owner), "shape", owner);
  // Films are cut by convolutions of five dimensions, which nothing reads.
  if (is_of_pictures_or_sounds(name)) join_leading(shape, owner);
  const uint64_t size = set_shape(tensor, shape, owner);
  const auto offsets = whole_numbers(field_of(entry, "data_offsets", owner), "data_offsets", owner);
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    throw bad_input("The field 'data_offsets' of " + owner + " must be a beginning and an end not before it.");
  }
  extent = {offsets[0], offsets[1]};
  if (size != extent.end - extent.begin) {
    throw bad_input("The " + owner + " of shape " + tensor.shape_text() + " and type " +
                    std::string(to_string(tensor.type)) + " takes " + std::to_string(size) +
                    " bytes, but its data_offsets span " + std::to_string(extent.end - extent.begin) + ".");
  }
  return tensor;
}

std::map<std::string, std::string> read_metadata(const json& object) {
  if (!object.is_object()) throw bad_input("The header's '__metadata__' must be an object of strings.");
  std::map<std::string, std::string> result;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) throw bad_input("The header's '__metadata__' entry " + quoted_name(key) + " is no string.");
    result[key] = value.get<std::string>();
  }
  return result;
}

/// Tensors must tile the data section: what no tensor owns could hide other content.
void require_contiguous(const std::vector<std::pair<ByteRange, TensorView>>& tensors, uint64_t header_size,
                        uint64_t data_size) {
  uint64_t expected = 0;
  for (const auto& [extent, tensor] : tensors) {
    if (extent.begin != expected) {
      throw bad_input("There is " + std::string(extent.begin < expected ? "an overlap" : "a hole") +
                      " in the data: the tensor " + quoted_name(tensor.name) + " begins at " +
                      std::to_string(extent.begin) + ", the tensor before it ends at " + std::to_string(expected) +
                      ".");
    }
    expected = extent.end;
  }
  if (expected == data_size) return;
  const std::string shortage = explain_incomplete(header_size + data_size, header_size + expected);
  throw bad_input((shortage.empty() ? "" : shortage + " ") + "The tensors take " + std::to_string(expected) +
                  " bytes, but " + std::to_string(data_size) + " bytes follow the header.");
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const fs::path& path) {
  SafetensorsFile result;
  result.file_ = MappedFile::open(path);
  result.file_.read_checked([&](std::span<const std::byte> bytes) { result.parse_all(bytes); });
  return result;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes) {
  SafetensorsFile result;
  result.parse_all(bytes);
  return result;
}

void SafetensorsFile::parse_all(std::span<const std::byte> bytes) {
  refuse_lfs_pointer(bytes);
  Reader reader(bytes);
  const auto header_size = reader.read<uint64_t>("the header's length");
  if (header_size > max_header_bytes) {
    const std::string foreign = explain_foreign_file(bytes);
    throw bad_input("The header's length is " + std::to_string(header_size) + " bytes; at most " +
                    std::to_string(max_header_bytes) + " are allowed." + (foreign.empty() ? "" : " " + foreign));
  }
  const std::string_view header = reader.text(header_size, "the header");
  if (header.empty() || header.front() != '{') throw bad_input("The header does not begin with '{'.");
  const json root = parse_json(header, "The header", DuplicateKeys::refuse);

  std::vector<std::pair<ByteRange, TensorView>> placed;
  for (const auto& [name, entry] : root.items()) {
    if (name == "__metadata__") {
      metadata_ = read_metadata(entry);
      continue;
    }
    if (name.empty()) throw bad_input("A tensor's name is empty.");
    ByteRange extent;
    TensorView tensor = read_entry(name, entry, extent);
    placed.emplace_back(extent, std::move(tensor));
  }
  std::ranges::sort(placed, {}, [](const auto& item) { return std::pair(item.first.begin, item.first.end); });
  require_contiguous(placed, reader.offset(), reader.remaining());
  const auto data = bytes.subspan(reader.offset());
  tensors_.reserve(placed.size());
  for (auto& [extent, tensor] : placed) {
    place_tensor(tensor, extent.begin, extent.end - extent.begin, data, "tensor " + quoted_name(tensor.name));
    tensors_.push_back(std::move(tensor));
  }
}

namespace {

constexpr uint64_t max_index_bytes = 64ull << 20;

/// A shard is a file in the folder itself: a name that leads elsewhere would read files the user did not choose.
void check_shard_name(const std::string& name) {
  const bool plain = !name.empty() && name.find_first_of(std::string_view("/\\:\0", 4)) == std::string::npos;
  if (!plain || !name.ends_with(".safetensors") || name.starts_with('.')) {
    throw bad_input("The index names the shard " + quoted_name(name) +
                    "; a shard must be a .safetensors file in the same folder.");
  }
}

/// tensor name -> shard
std::unordered_map<std::string, std::string> read_weight_map(const std::string& text) {
  const json root = parse_json(text, "The index", DuplicateKeys::refuse);
  const JsonFields fields(root, "the index");
  const json* map = fields.object("weight_map");
  if (map == nullptr || map->empty()) throw bad_input("The index has no 'weight_map', or an empty one.");
  std::unordered_map<std::string, std::string> result;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) throw bad_input("The index gives the tensor " + quoted_name(tensor) + " no shard's name.");
    result[tensor] = shard.get<std::string>();
    check_shard_name(result[tensor]);
  }
  return result;
}

void require_all_there(const fs::path& folder, const std::set<std::string>& shards) {
  std::vector<std::string> missing;
  for (const std::string& shard : shards) {
    std::error_code ignored;
    // A link that leads nowhere is left to what opens it.
    if (fs::symlink_status(folder / shard, ignored).type() == fs::file_type::not_found) missing.push_back(shard);
  }
  if (missing.empty()) return;
  throw bad_input("The file " + shown(folder / missing.front()) + " does not exist; " +
                  std::to_string(shards.size() - missing.size()) + " of the " + std::to_string(shards.size()) +
                  " shards that the index names are there. Get the missing ones too.");
}

}  // namespace

SafetensorsFolder SafetensorsFolder::open(const fs::path& folder) {
  SafetensorsFolder result;
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  std::error_code ignored;
  if (fs::exists(single, ignored)) {
    result.add(single);
  } else if (fs::exists(index, ignored)) {
    with_context(shown(index.filename()), [&] { result.open_shards(folder, index); });
  } else {
    throw bad_input(explain_folder_without_weights(folder));
  }
  return result;
}

void SafetensorsFolder::add(const fs::path& path) {
  files_.push_back(with_context(shown(path.filename()), [&] { return SafetensorsFile::open(path); }));
  const auto added = files_.back().tensors();
  tensors_.insert(tensors_.end(), added.begin(), added.end());
}

void SafetensorsFolder::open_shards(const fs::path& folder, const fs::path& index) {
  auto weight_map = read_weight_map(read_small_file(index, max_index_bytes));
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : weight_map) shards.insert(shard);
  if (shards.size() > max_shards) {
    throw bad_input("The index names " + std::to_string(shards.size()) + " shards; at most " +
                    std::to_string(max_shards) + " are allowed.");
  }
  require_all_there(folder, shards);
  std::set<std::string> seen;
  for (const std::string& shard : shards) {
    add(folder / shard);
    for (const TensorView& tensor : files_.back().tensors()) {
      if (!seen.insert(tensor.name).second)
        throw bad_input("The tensor " + quoted_name(tensor.name) + " is in two shards.");
      const auto found = weight_map.find(tensor.name);
      if (found != weight_map.end() && found->second == shard) weight_map.erase(found);
    }
  }
  if (!weight_map.empty()) {
    const auto& [tensor, shard] = *weight_map.begin();
    throw bad_input("The tensor " + quoted_name(tensor) + " is not in the shard " + quoted_name(shard) +
                    ", where the index says it is.");
  }
}

}  // namespace canopy
