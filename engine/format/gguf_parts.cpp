#include "engine/format/gguf_parts.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/gguf.h"

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

}  // namespace canopy
