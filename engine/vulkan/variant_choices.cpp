#include "engine/vulkan/variant_choices.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/damage_hash.h"
#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/printable.h"
#include "engine/format/json_text.h"

namespace canopy::vk {

namespace {

using nlohmann::json;

constexpr const char* kChoicesFormat = "canopy-variants";
constexpr uint32_t kChoicesVersion = 1;
constexpr uintmax_t kMostChoicesBytes = 4 << 20;
constexpr size_t kMostNumbers = 16;

json entry_of(const VariantKey& key, const VariantNumbers& numbers) {
  json entry = {to_string(key.family), to_string(key.op), to_string(key.type), key.rows, key.cols, key.width, numbers};
  if (key.op == ProductOp::experts) entry.insert(entry.end(), {key.experts, key.used});
  return entry;
}

uint32_t number_of(const json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX) {
    throw bad_input("it has " + value.dump() + " where a whole number is expected");
  }
  return value.get<uint32_t>();
}

template <class Named>
Named named(const json& value, std::initializer_list<Named> all) {
  for (const Named one : all) {
    if (value == to_string(one)) return one;
  }
  throw bad_input("it has the unknown word " + value.dump());
}

WeightType type_named(const json& value) {
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    if (value == to_string(static_cast<WeightType>(i))) return static_cast<WeightType>(i);
  }
  throw bad_input("it has the unknown type " + value.dump());
}

std::pair<VariantKey, VariantNumbers> choice_of(const json& entry) {
  const bool of_experts = entry.is_array() && entry.size() == 9;
  if (!entry.is_array() || (entry.size() != 7 && !of_experts) || !entry[6].is_array() ||
      entry[6].size() > kMostNumbers) {
    throw bad_input("it has an entry of another form");
  }
  VariantKey key;
  key.family = named(entry[0], {KernelFamily::fma, KernelFamily::matrix, KernelFamily::matrix_i8});
  key.op = of_experts ? named(entry[1], {ProductOp::experts})
                      : named(entry[1], {ProductOp::linear, ProductOp::add, ProductOp::swiglu});
  key.type = type_named(entry[2]);
  key.rows = number_of(entry[3]);
  key.cols = number_of(entry[4]);
  key.width = number_of(entry[5]);
  if (of_experts) key.experts = number_of(entry[7]), key.used = number_of(entry[8]);
  VariantNumbers numbers;
  for (const json& number : entry[6]) numbers.push_back(number_of(number));
  return {key, numbers};
}

std::string text_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) throw bad_input("it is no readable file");
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > kMostChoicesBytes) {
    throw bad_input("it has more than " + std::to_string(kMostChoicesBytes) + " bytes");
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text(bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!stream) throw bad_input("it cannot be read");
  return text;
}

}  // namespace

const char* to_string(ProductOp op) {
  switch (op) {
    case ProductOp::linear: return "linear";
    case ProductOp::add: return "add";
    case ProductOp::swiglu: return "swiglu";
    case ProductOp::experts: return "experts";
  }
  return "unknown";
}

std::string describe(const VariantKey& key) {
  const std::string of_all =
      key.experts > 0 ? " " + std::to_string(key.used) + " of " + std::to_string(key.experts) : "";
  return std::string(to_string(key.op)) + " " + to_string(key.type) + of_all + " " + std::to_string(key.rows) + "x" +
         std::to_string(key.cols) + " x" + std::to_string(key.width);
}

VariantChoices::VariantChoices(std::filesystem::path file, std::string identity)
    : file_(std::move(file)), identity_(std::move(identity)) {
  std::error_code error;
  if (file_.empty() || std::filesystem::status(file_, error).type() == std::filesystem::file_type::not_found) return;
  try {
    load();
  } catch (const std::exception& e) {
    choices_.clear();
    log_info("The chosen kernels in \"" + printable(file_.string()) + "\" are not used: " + e.what() + ".");
  }
}

void VariantChoices::load() {
  const json file = parse_json(text_of(file_), "the file", DuplicateKeys::refuse);
  const JsonFields fields(file, "the file");
  if (fields.text("format") != kChoicesFormat) throw bad_input("it holds no choice of kernels");
  if (const uint32_t version = fields.u32("version"); version != kChoicesVersion) {
    throw bad_input("its format is version " + std::to_string(version) + ", this program reads version " +
                    std::to_string(kChoicesVersion));
  }
  if (fields.text("identity") != identity_) {
    throw bad_input("it was made for another device, driver or version of the kernels");
  }
  const json& list = fields.list("choices");
  if (fields.text("hash") != damage_hash_text(list.dump()))
    throw bad_input("its content is damaged (the hash differs)");
  for (const json& entry : list) choices_.insert(choice_of(entry));
}

const VariantNumbers* VariantChoices::find(const VariantKey& key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? nullptr : &found->second;
}

void VariantChoices::set(const VariantKey& key, VariantNumbers numbers) {
  choices_[key] = std::move(numbers);
  changed_ = true;
}

std::string VariantChoices::save() {
  if (!changed_ || file_.empty()) return {};
  changed_ = false;
  json list = json::array();
  for (const auto& [key, numbers] : choices_) list.push_back(entry_of(key, numbers));
  const json file = {{"format", kChoicesFormat},
                     {"version", kChoicesVersion},
                     {"identity", identity_},
                     {"hash", damage_hash_text(list.dump())},
                     {"choices", list}};
  try {
    if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path());
    write_file_atomically(file_, file.dump());
  } catch (const std::exception& e) {
    return std::string("The chosen kernels were not saved: ") + e.what();
  }
  return {};
}

}  // namespace canopy::vk
