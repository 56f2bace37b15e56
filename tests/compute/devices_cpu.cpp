// The processor, with each instruction set that it has and with one, two and three threads.

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/processor.h"
#include "tests/compute/devices.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

Device& oracle() {
  static const std::unique_ptr<Device> device = make_reference_device();
  return *device;
}

const std::vector<NamedDevice>& devices_under_test() {
  static std::vector<std::unique_ptr<Device>> opened;
  static const std::vector<NamedDevice> devices = [] {
    std::vector<NamedDevice> all;
    for (const cpu::InstructionSet& set : cpu::instruction_sets()) {
      if (!set.missing.empty()) continue;
      const auto threads = static_cast<uint32_t>(1 + all.size() % 3);
      opened.push_back(open_cpu_device({set.kernels->name, threads}));
      all.push_back({set.kernels->name, opened.back().get()});
    }
    return all;
  }();
  return devices;
}

}  // namespace canopy::test
