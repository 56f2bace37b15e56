#include "engine/sensors/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace canopy {
namespace {

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

}  // namespace

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

}  // namespace canopy
