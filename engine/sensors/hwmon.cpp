#include "engine/sensors/hwmon.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/printable.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

/// The beginning of a file of one line; empty where it cannot be read.
std::string first_line(const fs::path& path) {
  constexpr size_t most = 64;
  std::array<char, most> text{};
  std::ifstream stream(path, std::ios::binary);
  stream.read(text.data(), most);
  const std::string_view all(text.data(), static_cast<size_t>(stream.gcount()));
  return std::string(all.substr(0, all.find_first_of("\r\n")));
}

/// A whole number in a file, times `unit`; nothing where there is none.
std::optional<double> number_in(const fs::path& path, double unit) {
  if (path.empty()) return std::nullopt;
  const std::string text = first_line(path);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<double>(value) * unit;
}

/// The first of these files that holds a number; an empty path where none does.
fs::path first_readable(const fs::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (number_in(folder / name, 1)) return folder / name;
  return {};
}

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path());
  std::ranges::sort(found);
  return found;
}

class Hwmon final : public DeviceSensors {
 public:
  explicit Hwmon(const fs::path& folder, fs::path clock) : clock_(std::move(clock)) {
    const std::string driver = first_line(folder / "name");
    name_ = "hwmon" + (driver.empty() ? "" : " " + printable(driver, 32));
    // Of the card, else of what stands on it.
    energy_ = first_readable(folder, {"energy1_input", "energy2_input"});
    // The average is the driver's own over some milliseconds; cards have one or the other.
    power_ = first_readable(folder, {"power1_average", "power1_input"});
    temperature_ = first_readable(folder, {"temp1_input", "temp2_input"});
    clock_in_hz_ = first_readable(folder, {"freq1_input"});
  }

  bool tells_energy() const { return !energy_.empty() || !power_.empty(); }
  const std::string& name() const override { return name_; }

  SensorReading read() override {
    SensorReading reading;
    reading.energy_j = number_in(energy_, 1e-6);
    reading.power_w = number_in(power_, 1e-6);
    reading.temperature_c = number_in(temperature_, 1e-3);
    reading.clock_mhz = clock_in_hz_.empty() ? number_in(clock_, 1) : number_in(clock_in_hz_, 1e-6);
    return reading;
  }

 private:
  std::string name_;
  fs::path energy_, power_, temperature_, clock_in_hz_, clock_;
};

/// The file in which i915 or xe tells the clock in MHz.
fs::path intel_clock(const fs::path& pci_folder) {
  const fs::path xe = pci_folder / "tile0/gt0/freq0/act_freq";
  if (number_in(xe, 1)) return xe;
  for (const fs::path& card : subfolders(pci_folder / "drm")) {
    const fs::path clock = first_readable(card, {"gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz"});
    if (!clock.empty()) return clock;
  }
  return {};
}

}  // namespace

std::unique_ptr<DeviceSensors> open_hwmon(const fs::path& pci_folder) {
  const fs::path clock = intel_clock(pci_folder);
  for (const fs::path& folder : subfolders(pci_folder / "hwmon")) {
    auto sensors = std::make_unique<Hwmon>(folder, clock);
    if (sensors->tells_energy()) return sensors;
  }
  return nullptr;
}

}  // namespace canopy
