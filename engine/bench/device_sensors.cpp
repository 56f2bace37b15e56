#include "engine/bench/device_sensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/posix.h"
#include "engine/base/text.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

// NVIDIA's management library, which comes with the driver: opened at run time, so that neither headers nor the library
// are needed to build or to start.

// The part of NVML's interface that is used, as its reference manual describes it.
using NvmlDevice = struct NvmlDeviceHandle*;
using NvmlResult = int;
constexpr NvmlResult kNvmlSuccess = 0;
constexpr int kNvmlClockSm = 1;
constexpr int kNvmlTemperatureGpu = 0;

class NvmlLibrary {
 public:
  explicit NvmlLibrary(const std::string& path) : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    find(init, "nvmlInit_v2");
    find(shutdown, "nvmlShutdown");
    find(by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
    find(energy, "nvmlDeviceGetTotalEnergyConsumption");
    find(power, "nvmlDeviceGetPowerUsage");
    find(clock, "nvmlDeviceGetClockInfo");
    find(temperature, "nvmlDeviceGetTemperature");
    started_ = init != nullptr && shutdown != nullptr && by_pci != nullptr && init() == kNvmlSuccess;
  }
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary() {
    if (started_) shutdown();
    if (handle_ != nullptr) ::dlclose(handle_);
  }

  bool started() const { return started_; }

  NvmlResult (*init)() = nullptr;
  NvmlResult (*shutdown)() = nullptr;
  NvmlResult (*by_pci)(const char*, NvmlDevice*) = nullptr;
  NvmlResult (*energy)(NvmlDevice, unsigned long long*) = nullptr;  // millijoules since the driver was loaded
  NvmlResult (*power)(NvmlDevice, unsigned int*) = nullptr;         // milliwatts
  NvmlResult (*clock)(NvmlDevice, int, unsigned int*) = nullptr;    // MHz
  NvmlResult (*temperature)(NvmlDevice, int, unsigned int*) = nullptr;

 private:
  template <class F>
  void find(F& function, const char* name) {
    function = reinterpret_cast<F>(::dlsym(handle_, name));
  }

  void* handle_;
  bool started_ = false;
};

class Nvml final : public DeviceSensors {
 public:
  Nvml(std::unique_ptr<NvmlLibrary> library, NvmlDevice device) : library_(std::move(library)), device_(device) {}

  const std::string& name() const override { return name_; }

  SensorReading read() override {
    SensorReading reading;
    unsigned long long millijoules = 0;
    if (library_->energy != nullptr && library_->energy(device_, &millijoules) == kNvmlSuccess)
      reading.energy_j = static_cast<double>(millijoules) / 1000;
    unsigned int value = 0;
    if (library_->power != nullptr && library_->power(device_, &value) == kNvmlSuccess)
      reading.power_w = value / 1000.0;
    if (library_->clock != nullptr && library_->clock(device_, kNvmlClockSm, &value) == kNvmlSuccess)
      reading.clock_mhz = value;
    if (library_->temperature != nullptr && library_->temperature(device_, kNvmlTemperatureGpu, &value) == kNvmlSuccess)
      reading.temperature_c = value;
    return reading;
  }

 private:
  std::string name_ = "NVML";
  std::unique_ptr<NvmlLibrary> library_;
  NvmlDevice device_;
};

/// The sensors of the device at that PCI address; null without the library, or where it does not know the device.
std::unique_ptr<DeviceSensors> open_nvml(const std::string& library, const std::string& pci_address) {
  auto nvml = std::make_unique<NvmlLibrary>(library);
  if (!nvml->started()) return nullptr;
  NvmlDevice device = nullptr;
  if (nvml->by_pci(pci_address.c_str(), &device) != kNvmlSuccess) return nullptr;
  auto sensors = std::make_unique<Nvml>(std::move(nvml), device);
  const SensorReading reading = sensors->read();
  if (!reading.energy_j && !reading.power_w) return nullptr;
  return sensors;
}

// Sensors that Linux shows as files: the hwmon folders of amdgpu, i915, xe and others
// (Documentation/hwmon/sysfs-interface of the kernel).

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

/// The sensors below the folder of a PCI device; null where it tells neither energy nor power.
std::unique_ptr<DeviceSensors> open_hwmon(const fs::path& pci_folder) {
  const fs::path clock = intel_clock(pci_folder);
  for (const fs::path& folder : subfolders(pci_folder / "hwmon")) {
    auto sensors = std::make_unique<Hwmon>(folder, clock);
    if (sensors->tells_energy()) return sensors;
  }
  return nullptr;
}

constexpr const char* kNvidia = "0x10de";

std::string vendor_of(const fs::path& pci_folder) {
  std::string vendor;
  std::ifstream(pci_folder / "vendor") >> vendor;
  return vendor;
}

}  // namespace

std::unique_ptr<DeviceSensors> open_device_sensors(const std::string& pci_address, const SensorSources& sources) {
  // The address becomes part of a path.
  if (pci_address.empty() || pci_address.find_first_not_of("0123456789abcdef:.") != std::string::npos) return nullptr;
  const fs::path folder = sources.sysfs / "bus/pci/devices" / pci_address;
  const std::string vendor = vendor_of(folder);
  // Other makers' machines are not made to load NVIDIA's library.
  if (vendor.empty() || vendor == kNvidia) {
    if (auto sensors = open_nvml(sources.nvml, pci_address)) return sensors;
  }
  return open_hwmon(folder);
}

namespace {

constexpr std::chrono::milliseconds kBetweenReadings{50};

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void PowerSum::add(double seconds, double watts) {
  if (readings_ > 0) joules_ += (seconds - last_seconds_) * (watts + last_watts_) / 2;
  ++readings_;
  last_seconds_ = seconds;
  last_watts_ = watts;
}

std::optional<double> PowerSum::joules() const {
  return readings_ < 2 ? std::nullopt : std::optional(joules_);
}

void EnergyMeter::begin() {
  stop_thread();
  counter_.reset();
  sum_ = {};
  if (sensors_ == nullptr) return;
  const SensorReading now = sensors_->read();
  counter_ = now.energy_j;
  if (counter_ || !now.power_w) return;
  sum_.add(monotonic_seconds(), *now.power_w);
  stopping_ = false;
  thread_ = std::thread([this] { sample(); });
}

void EnergyMeter::sample() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kBetweenReadings, [this] { return stopping_; })) {
    const SensorReading now = sensors_->read();
    if (now.power_w) sum_.add(monotonic_seconds(), *now.power_w);
  }
}

void EnergyMeter::stop_thread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

SensorReading EnergyMeter::end() {
  const bool sampled = thread_.joinable();
  stop_thread();
  if (sensors_ == nullptr) return {};
  SensorReading now = sensors_->read();
  std::optional<double> joules;
  if (counter_ && now.energy_j && *now.energy_j >= *counter_) joules = *now.energy_j - *counter_;
  if (sampled && now.power_w) {
    sum_.add(monotonic_seconds(), *now.power_w);
    joules = sum_.joules();
  }
  now.energy_j = joules;
  counter_.reset();
  return now;
}

}  // namespace canopy
