#include "engine/vulkan/device_selection.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "engine/base/error.h"

namespace canopy::vk {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::optional<uint32_t> parse_index(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// Lower is better.
int preference(DeviceType type) {
  switch (type) {
    case DeviceType::discrete: return 0;
    case DeviceType::integrated: return 1;
    case DeviceType::virtual_gpu: return 2;
    case DeviceType::cpu: return 3;
    case DeviceType::other: break;
  }
  return 4;
}

std::optional<DeviceType> parse_type(std::string_view word) {
  for (const DeviceType type :
       {DeviceType::discrete, DeviceType::integrated, DeviceType::virtual_gpu, DeviceType::cpu}) {
    if (word == to_string(type)) {
      return type;
    }
  }
  return std::nullopt;
}

Error no_device(const std::string& problem, std::span<const DeviceReport> reports) {
  return Error(ErrorKind::unavailable,
               reports.empty()
                   ? problem +
                         " No Vulkan device was found: install the driver of the graphics card, or, "
                         "without one, the software device of the package mesa-vulkan-drivers."
                   : problem + " Choose one of these that can be used, or update its driver. Devices found:\n" +
                         describe_devices(reports));
}

// The best usable device among those that `fits` accepts.
template <class Fits>
size_t best_device(std::span<const DeviceReport> reports, const std::string& what, Fits fits) {
  std::optional<size_t> best;
  bool any_fits = false;
  for (size_t i = 0; i < reports.size(); ++i) {
    if (!fits(reports[i])) {
      continue;
    }
    any_fits = true;
    if (!reports[i].usable) {
      continue;
    }
    const auto key = [&](size_t k) { return std::pair(preference(reports[k].type), reports[k].index); };
    if (!best || key(i) < key(*best)) {
      best = i;
    }
  }
  if (!best) {
    throw no_device(any_fits ? "No Vulkan device" + what + " can be used." : "There is no Vulkan device" + what + ".",
                    reports);
  }
  return *best;
}

}  // namespace

size_t select_device(std::span<const DeviceReport> reports, std::string_view selector) {
  if (selector.empty()) {
    return best_device(reports, "", [](const DeviceReport&) { return true; });
  }
  const std::string quoted = " \"" + std::string(selector) + "\"";
  if (const std::optional<uint32_t> index = parse_index(selector)) {
    return best_device(reports, " with index" + quoted, [&](const DeviceReport& r) { return r.index == *index; });
  }
  const std::string word = lower(selector);
  if (const std::optional<DeviceType> type = parse_type(word)) {
    return best_device(reports, " of type" + quoted, [&](const DeviceReport& r) { return r.type == *type; });
  }
  return best_device(reports, " with a name like" + quoted,
                     [&](const DeviceReport& r) { return lower(r.name).find(word) != std::string::npos; });
}

std::string describe_devices(std::span<const DeviceReport> reports) {
  std::string text;
  for (const DeviceReport& report : reports) {
    text += (text.empty() ? "" : "\n") + std::to_string(report.index) + ": " + report.name + " (" +
            std::string(to_string(report.type)) + ", " + report.driver_name + " " + report.driver_version + ")";
    if (!report.usable) {
      text += " — not usable: " + report.reason;
    }
  }
  return text;
}

}  // namespace canopy::vk
