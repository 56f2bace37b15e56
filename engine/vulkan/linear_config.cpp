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

constexpr int kChoicesVersion = 1;

}  // namespace

KernelOptions linear_options(const LinearConfig& config, WeightType type, uint32_t n, bool ragged, bool quads) {
  if (config.whole && config.split != 1) throw bad_input("A row summed in one go cannot be split.");
  uint32_t unroll = 1;
  const uint32_t quads_per_unit = word_format(type) != nullptr ? 1 : columns_per_unit(type) / 4;
  if (word_format(type) != nullptr && 32 * n * config.rows <= config.body) unroll = 4;  // quads of both halves
  for (const uint32_t quads : {quads_per_unit, 4u}) {
    if (quads <= quads_per_unit && unroll == 1 && 4 * quads * n * config.rows <= config.body) unroll = quads;
  }
  return {{{0, n},
           {1, config.rows},
           {2, config.lanes},
           {3, config.split},
           {4, unroll},
           {6, ragged ? 1u : 0u},
           {7, quads ? 1u : 0u},
           {8, config.whole ? 1u : 0u}},
          0};
}

bool fits(const LinearConfig& config, uint32_t columns, const DeviceLimits& limits) {
  constexpr uint64_t lane_sums = 32;  // of a column, in shaders/squares.glsl, and there a word more
  const uint64_t parts = config.split > 1 ? uint64_t{config.split} * config.lanes * config.rows * columns : 1;
  const uint64_t shared_bytes = (parts + lane_sums * columns + 1) * 4;
  return config.lanes <= limits.max_group_size[0] && config.split <= limits.max_group_size[1] &&
         uint64_t{config.lanes} * config.split <= limits.max_invocations && shared_bytes <= limits.max_shared_bytes;
}

std::vector<LinearConfig> linear_candidates(bool software, const LinearShapeKey& key, const DeviceLimits& limits) {
  if (software) {
    // Measured on llvmpipe: more than 16 sums do not stay in its registers and its first 4 KiB of stack.
    if (key.columns > 2) return {{4, 8, 1}};
    return {{8, 8, 1}, {4, 8, 1}};
  }
  const uint32_t segments = (key.cols + 255) / 256;
  std::vector<LinearConfig> all = {{4, 32, 1}, {4, 64, 1}};
  for (uint32_t split = 4; split <= 16 && split <= segments; split *= 2) {
    // More shared memory for partial sums leaves a GPU too few workgroups at once.
    if (32 * 4 * key.columns * split * 4 <= 16384) all.push_back({4, 32, split});
  }
  std::erase_if(all, [&](const LinearConfig& config) { return !fits(config, key.columns, limits); });
  return all;
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
    if (!entry.is_array() || entry.size() != 7) continue;
    if (!std::ranges::all_of(entry, [](const auto& v) { return v.is_number_unsigned() && v < 0x7FFFFFFFu; })) continue;
    const LinearConfig config{entry[4], entry[5], entry[6]};
    const bool sane = (config.rows == 4 || config.rows == 8 || config.rows == 16) && config.lanes >= 1 &&
                      config.lanes <= 64 && config.split >= 1 && config.lanes * config.split <= 1024;
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
    list.push_back(
        {static_cast<uint32_t>(key.type), key.rows, key.cols, key.columns, config.rows, config.lanes, config.split});
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
