#include "engine/calibration/calibration_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <system_error>

#include "engine/base/atomic_file.h"
#include "engine/base/damage_hash.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/printable.h"
#include "engine/base/text_encoding.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

using nlohmann::json;

constexpr const char* file_format = "canopy-calibration";
constexpr uint32_t file_version = 1;
constexpr uintmax_t max_file_bytes = 1 << 20;
constexpr size_t max_key_bytes = 1 << 15;
constexpr size_t max_points = 8192;
constexpr uint32_t max_rows = 1u << 16;
constexpr uint32_t max_context = 1u << 26;

struct KeyField {
  const char* name;
  const char* what;
  std::string CalibrationKey::*value;
};

constexpr std::array<KeyField, 7> key_fields = {{
    {"device", "device", &CalibrationKey::device},
    {"driver", "version of the driver", &CalibrationKey::driver},
    {"model", "model", &CalibrationKey::model},
    {"drafter", "drafter", &CalibrationKey::drafter},
    {"quantization", "quantization", &CalibrationKey::quantization},
    {"kv_type", "type of K/V cache", &CalibrationKey::kv_type},
    {"variants", "choice of kernels", &CalibrationKey::variants},
}};

json key_json(const CalibrationKey& key) {
  json result = json::object();
  for (const KeyField& field : key_fields) result[field.name] = printable(key.*field.value, max_key_bytes);
  return result;
}

/// Shape to variant, of CalibrationKey::tuned.
std::map<std::string_view, std::string_view> variants_of(std::string_view tuned) {
  std::map<std::string_view, std::string_view> variants;
  while (!tuned.empty()) {
    const std::string_view entry = tuned.substr(0, tuned.find("; "));
    tuned.remove_prefix(std::min(tuned.size(), entry.size() + 2));
    // Without " (" it is npos + 1 = 0, and the entry is skipped.
    const size_t variant = std::min(entry.find(" (") + 1, entry.size());
    if (variant > 0) variants.insert_or_assign(entry.substr(0, variant - 1), entry.substr(variant));
  }
  return variants;
}

void require_same_variants(std::string_view then, std::string_view now) {
  const auto known = variants_of(now);
  for (const auto& [shape, variant] : variants_of(then)) {
    const auto found = known.find(shape);
    if (found == known.end() || found->second == variant) continue;
    throw bad_input("it was measured with another kernel for " + quoted_name(shape) + ": " +
                    printable(std::string(variant)) + ", now " + printable(std::string(found->second)));
  }
}

json table_json(const CostTable& table) {
  const auto list = [](const std::vector<CostPoint>& points) {
    json result = json::array();
    for (const CostPoint& p : points) result.push_back({p.rows, p.context, p.ms});
    return result;
  };
  json other = json::array();
  for (const OtherCost& p : table.other_points()) other.push_back({p.width, p.ms});
  return {{"tile", table.tile()},
          {"verify", list(table.verify_points())},
          {"draft", list(table.draft_points())},
          {"other", other}};
}

// One entry of a list: whole numbers, then a time.
template <size_t count>
std::pair<std::array<uint32_t, count>, double> read_entry(const json& entry, const std::string& where) {
  if (!entry.is_array() || entry.size() != count + 1 || !entry.back().is_number()) {
    throw bad_input(where + " is no list of " + std::to_string(count) + " whole numbers and a time");
  }
  std::array<uint32_t, count> numbers{};
  for (size_t i = 0; i < count; ++i) {
    const uint32_t most = i == 0 ? max_rows : max_context;
    if (!entry[i].is_number_unsigned() || entry[i].get<uint64_t>() > most) {
      throw bad_input(where + " has the number " + entry[i].dump() + ", where 0 to " + std::to_string(most) +
                      " is allowed");
    }
    numbers[i] = entry[i].get<uint32_t>();
  }
  return {numbers, entry.back().get<double>()};
}

template <size_t count, class Take>
void read_list(const JsonFields& fields, const char* name, Take&& take) {
  const json& list = fields.list(name);
  if (list.size() > max_points) {
    throw bad_input("the list \"" + std::string(name) + "\" has " + std::to_string(list.size()) + " entries, at most " +
                    std::to_string(max_points) + " are allowed");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [numbers, ms] = read_entry<count>(list[i], "entry " + std::to_string(i) + " of \"" + name + "\"");
    take(numbers, ms);
  }
}

CostTable read_table(const json& object) {
  const JsonFields fields(object, "the table");
  const uint32_t tile = fields.u32("tile");
  if (tile < 1 || tile > 1024) {
    throw bad_input("its tile is " + std::to_string(tile) + ", where 1 to 1024 is allowed");
  }
  CostTable table(tile);
  read_list<2>(fields, "verify", [&](const auto& at, double ms) { table.set_verify(at[0], at[1], ms); });
  read_list<2>(fields, "draft", [&](const auto& at, double ms) { table.set_draft(at[0], at[1], ms); });
  read_list<1>(fields, "other", [&](const auto& at, double ms) { table.set_other(at[0], ms); });
  if (table.verify_points().empty()) throw bad_input("it holds no measured pass");
  return table;
}

void check_format(const JsonFields& fields) {
  if (fields.text("format") != file_format) throw bad_input("it is no calibration");
  if (const uint32_t version = fields.u32("version"); version != file_version) {
    throw bad_input("its format is version " + std::to_string(version) + ", this program reads version " +
                    std::to_string(file_version));
  }
}

CostTable checked_table(const JsonFields& fields) {
  const json& table = fields.at("table");
  if (fields.text("hash") != damage_hash_text(table.dump()))
    throw bad_input("its content is damaged (the hash differs)");
  return read_table(table);
}

std::string file_text(const CalibrationKey& key, const CostTable& table) {
  const json content = table_json(table);
  // Serialized and parsed again, so that the hash is computed from the same values as when the file is read.
  const std::string hash = damage_hash_text(json::parse(content.dump()).dump());
  const json file = {{"format", file_format}, {"version", file_version},
                     {"key", key_json(key)},  {"tuned", printable(key.tuned, max_key_bytes)},
                     {"hash", hash},          {"table", content}};
  return file.dump(1) + "\n";
}

/// Of a file in the cache; others are read by read_text_input().
std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) throw bad_input("it is no readable file");
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > max_file_bytes) {
    throw bad_input("it has more than " + std::to_string(max_file_bytes) + " bytes");
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text(bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!stream) throw bad_input("it cannot be read");
  return text;
}

}  // namespace

std::filesystem::path calibration_folder() {
  return cache_dir() / "calibrations";
}

std::filesystem::path calibration_path(const std::filesystem::path& folder, const CalibrationKey& key) {
  return folder / (damage_hash_text(key_json(key).dump()) + ".json");
}

CostTable parse_calibration(const std::string& text, const CalibrationKey& key) {
  const json file = parse_json(text, "the file", DuplicateKeys::refuse);
  const JsonFields fields(file, "the file");
  check_format(fields);
  const JsonFields known(fields.at("key"), "its key");
  const json wanted = key_json(key);
  for (const KeyField& field : key_fields) {
    const std::string value = known.text(field.name);
    if (value == wanted.at(field.name).get<std::string>()) continue;
    throw bad_input("it was made for another " + std::string(field.what) + " (\"" + printable(value) + "\")");
  }
  require_same_variants(fields.text_or("tuned", ""), key.tuned);
  return checked_table(fields);
}

ForeignCalibration parse_foreign_calibration(const std::string& text) {
  const json file = parse_json(text, "the file", DuplicateKeys::refuse);
  const JsonFields fields(file, "the file");
  check_format(fields);
  const JsonFields known(fields.at("key"), "its key");
  ForeignCalibration calibration;
  for (const KeyField& field : key_fields) {
    calibration.key.*field.value = printable(known.text(field.name), max_key_bytes);
  }
  calibration.key.tuned = printable(fields.text_or("tuned", ""), max_key_bytes);
  calibration.table = checked_table(fields);
  return calibration;
}

ForeignCalibration read_calibration(const std::filesystem::path& path) {
  try {
    std::error_code error;
    if (path != "-" && (!std::filesystem::exists(path, error) || std::filesystem::is_directory(path, error))) {
      throw bad_input("it is no readable file");
    }
    return parse_foreign_calibration(read_text_input(path, max_file_bytes));
  } catch (const Error& e) {
    std::string why = e.what();
    if (why.empty() || why.back() != '.') why += ".";
    throw bad_input("The calibration " + quoted_name(path.string()) + " cannot be used: " + why);
  }
}

void write_calibration(const std::filesystem::path& path, const CalibrationKey& key, const CostTable& table) {
  write_file_atomically(path, file_text(key, table));
}

LoadedCalibration load_calibration(const std::filesystem::path& folder, const CalibrationKey& key) {
  const std::filesystem::path path = calibration_path(folder, key);
  const auto refused = [&](const std::string& why) {
    const bool ends = !why.empty() && why.back() == '.';
    return LoadedCalibration{
        {}, "The calibration \"" + printable(path.string()) + "\" is not used: " + why + (ends ? "" : ".")};
  };
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) return {};
  try {
    return {parse_calibration(read_text(path), key), ""};
  } catch (const std::exception& e) {
    return refused(e.what());
  }
}

std::string save_calibration(const std::filesystem::path& folder, const CalibrationKey& key, const CostTable& table) {
  try {
    std::filesystem::create_directories(folder);
    write_file_atomically(calibration_path(folder, key), file_text(key, table));
  } catch (const std::exception& e) {
    return std::string("The calibration was not saved: ") + e.what();
  }
  return "";
}

}  // namespace canopy
