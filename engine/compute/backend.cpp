#include "engine/compute/backend.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <tuple>

namespace canopy {
namespace {

constexpr double kEnoughSeconds = 0.25;  // of runs, where one run is longer than wanted
constexpr int kRuns = 5;

}  // namespace

double best_seconds(const std::function<double(uint32_t times)>& run, uint32_t most_times) {
  uint32_t times = 1;
  while (true) {
    const double seconds = run(times);
    if (seconds >= kWantedRunSeconds / 2 || times == most_times) break;
    // At most sixteenfold: the first run includes what a device does once.
    const double factor = std::clamp(kWantedRunSeconds / std::max(seconds, 1e-6), 1.5, 16.0);
    times = static_cast<uint32_t>(std::min<double>(most_times, std::max(times + 1.0, times * factor)));
  }
  double best = run(times);
  double spent = best;
  for (int i = 1; i < kRuns && spent < kEnoughSeconds; ++i) {
    const double seconds = run(times);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best / times;
}

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

template <class Words>
size_t place_of(const Words& words, std::string_view word) {
  return static_cast<size_t>(std::ranges::find(words, word) - words.begin());
}

std::optional<uint32_t> parse_number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error no_device(const std::string& problem, std::span<const ListedDevice> devices) {
  return Error(ErrorKind::unavailable,
               devices.empty()
                   ? problem + " No device was found: install the driver of the graphics card."
                   : problem + " Choose one of these that can be used, or update its driver. Devices found:\n" +
                         describe_devices(devices));
}

/// The best usable device among those that `fits` accepts.
template <class Fits>
size_t best_device(std::span<const ListedDevice> devices, std::span<const std::string> backends,
                   const std::string& what, Fits fits) {
  std::optional<size_t> best;
  bool any_fits = false;
  const auto key = [&](size_t i) {
    const ListedDevice& d = devices[i];
    return std::tuple(place_of(kDeviceTypes, d.type), backends.size() - place_of(backends, d.backend), d.number);
  };
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!fits(devices[i])) continue;
    any_fits = true;
    if (devices[i].usable && (!best || key(i) < key(*best))) best = i;
  }
  if (!best) {
    throw no_device(any_fits ? "No device" + what + " can be used." : "There is no device" + what + ".", devices);
  }
  return *best;
}

}  // namespace

size_t choose_device(std::span<const ListedDevice> devices, std::string_view selector,
                     std::span<const std::string> backends) {
  const auto best = [&](const std::string& what, auto fits) { return best_device(devices, backends, what, fits); };
  if (selector.empty()) return best("", [](const ListedDevice&) { return true; });
  const std::string quoted = " \"" + std::string(selector) + "\"";
  const std::string word = lower(selector);
  const auto has_number = [&](const ListedDevice& d) { return std::to_string(d.number) == word; };
  const auto is_called_so = [&](const ListedDevice& d) { return lower(d.name).find(word) != std::string::npos; };
  // "4090" is a name, "7" a number that is not in the list, also where there is an RX 7900.
  const bool is_name =
      word.size() > 2 && std::ranges::none_of(devices, has_number) && std::ranges::any_of(devices, is_called_so);
  if (parse_number(word) && !is_name) return best(" with index" + quoted, has_number);
  if (place_of(backends, word) < backends.size()) {
    return best(" of the backend" + quoted, [&](const ListedDevice& d) { return d.backend == word; });
  }
  if (names_backend(word, backends)) {
    return best(" called" + quoted, [&](const ListedDevice& d) { return d.id() == word; });
  }
  if (place_of(kDeviceTypes, word) < kDeviceTypes.size()) {
    return best(" of type" + quoted, [&](const ListedDevice& d) { return d.type == word; });
  }
  return best(" with a name like" + quoted, is_called_so);
}

bool names_backend(std::string_view selector, std::span<const std::string> backends) {
  const std::string word = lower(selector);
  const size_t colon = word.find(':');
  if (place_of(backends, std::string_view(word).substr(0, colon)) == backends.size()) return false;
  return colon == std::string::npos || parse_number(std::string_view(word).substr(colon + 1)).has_value();
}

std::string other_backend_of(std::span<const ListedDevice> devices, const ListedDevice& device) {
  const auto same = [&](const ListedDevice& d) {
    return !d.gpu.empty() && d.gpu == device.gpu && d.backend != device.backend;
  };
  const auto found = std::ranges::find_if(devices, same);
  return found == devices.end() ? "" : found->id();
}

std::string describe_devices(std::span<const ListedDevice> devices) {
  std::string text;
  for (const ListedDevice& device : devices) {
    const std::string other = other_backend_of(devices, device);
    text += (text.empty() ? "" : "\n") + std::to_string(device.number) + ": " + device.name + " (" + device.type +
            ", " + device.about + ") [" + device.id() + (other.empty() ? "" : ", the same GPU as " + other) + "]";
    if (!device.usable) text += " — not usable: " + device.reason;
  }
  return text;
}

}  // namespace canopy
