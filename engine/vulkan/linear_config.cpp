#include "engine/vulkan/linear_config.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/vulkan/weight_layout.h"
#include "engine/vulkan/word_layout.h"

namespace canopy::vk {

namespace {

constexpr int kChoicesVersion = 2;

}  // namespace

KernelOptions linear_options(const LinearConfig& config, WeightType type, uint32_t n, bool ragged, bool quads) {
  uint32_t unroll = 1;
  const uint32_t quads_per_unit = word_format(type) != nullptr ? 1 : columns_per_unit(type) / 4;
  if (word_format(type) != nullptr && 32 * n * config.rows <= config.body) unroll = 4;  // quads of both halves
  for (const uint32_t quads : {quads_per_unit, 4u}) {
    if (quads <= quads_per_unit && unroll == 1 && 4 * quads * n * config.rows <= config.body) unroll = quads;
  }
  return {{{0, n}, {1, config.rows}, {2, config.lanes}, {4, unroll}, {6, ragged ? 1u : 0u}, {7, quads ? 1u : 0u}}, 0};
}

std::vector<LinearConfig> linear_candidates(uint32_t columns) {
  // Measured on llvmpipe: more than 16 sums do not stay in its registers and its first 4 KiB of stack.
  if (columns > 2) return {{4, 8}};
  return {{8, 8}, {4, 8}};
}

LinearChoices::LinearChoices(std::filesystem::path file, std::string identity)
    : file_(std::move(file)), identity_(std::move(identity)) {
  if (!file_.empty()) load();
}

void LinearChoices::load() {
  std::ifstream in(file_, std::ios::binary);
  if (!in) return;
  std::stringstream text;
  text << in.rdbuf();
  const auto json = nlohmann::json::parse(text.str(), nullptr, false);
  const auto is = [&](const char* key, const nlohmann::json& value) {
    return json.contains(key) && json[key] == value;
  };
  if (!json.is_object() || !is("version", kChoicesVersion) || !is("identity", identity_) || !json.contains("choices") ||
      !json["choices"].is_array()) {
    return;
  }
  for (const auto& entry : json["choices"]) {
    if (!entry.is_array() || entry.size() != 6) continue;
    if (!std::ranges::all_of(entry, [](const auto& v) { return v.is_number_unsigned() && v < 0x7FFFFFFFu; })) continue;
    const LinearConfig config{entry[4], entry[5]};
    const bool sane =
        (config.rows == 4 || config.rows == 8 || config.rows == 16) && config.lanes >= 1 && config.lanes <= 64;
    if (!sane || entry[0] > kWeightTypes - 1) continue;
    choices_[{static_cast<WeightType>(entry[0].get<uint32_t>()), entry[1], entry[2], entry[3]}] = config;
  }
}

std::optional<LinearConfig> LinearChoices::find(const LinearShapeKey& key) const {
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

void LinearChoices::set(const LinearShapeKey& key, const LinearConfig& config) {
  choices_[key] = config;
  changed_ = true;
}

std::string LinearChoices::save() {
  if (!changed_ || file_.empty()) return {};
  changed_ = false;
  auto list = nlohmann::json::array();
  for (const auto& [key, config] : choices_) {
    list.push_back({static_cast<uint32_t>(key.type), key.rows, key.cols, key.columns, config.rows, config.lanes});
  }
  const nlohmann::json json = {{"version", kChoicesVersion}, {"identity", identity_}, {"choices", list}};
  try {
    const std::string text = json.dump();
    write_file_atomically(file_, text);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace canopy::vk
