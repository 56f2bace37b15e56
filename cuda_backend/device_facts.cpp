#include "cuda_backend/device_facts.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>

#include "cuda_backend/check.h"
#include "engine/base/printable.h"

namespace canopy::cuda {
namespace {

int attribute(const DriverApi& api, int which, DeviceId id) {
  int value = 0;
  check(api, api.device_attribute(&value, which, id), "Asking the GPU for its properties");
  return value;
}

std::string hex(const Uuid& uuid) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : uuid.bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

/// The architecture whose code a GPU runs, 0 where it runs none. Machine code runs on GPUs of its generation that are
/// not older; PTX, which is of the last architecture, on any that is not older.
int architecture_of(const EmbeddedKernels& kernels, int capability) {
  const auto& known = kernels.architectures;
  int found = 0;
  for (const int a : known) {
    if (a / 10 == capability / 10 && a <= capability) found = a;
  }
  return found == 0 && !known.empty() && capability >= known.back() ? known.back() : found;
}

std::string refusal(const DriverApi& api, const DeviceFacts& facts, int version, const EmbeddedKernels& kernels,
                    DeviceId id) {
  if (facts.capability < kLeastCapability) {
    return "Its compute capability is " + capability_words(facts.capability) + "; " +
           capability_words(kLeastCapability) + " or later is needed.";
  }
  if (attribute(api, kComputeMode, id) == kComputeModeProhibited) {
    return "Its owner has switched off computing on it (compute mode 'prohibited').";
  }
  if (kernels.architectures.empty()) return "This build of Canopy has no CUDA kernels; it was made without nvcc.";
  if (facts.architecture == 0) {
    return "This build of Canopy has no CUDA kernels for its compute capability " + capability_words(facts.capability) +
           ".";
  }
  if (version < kernels.least_driver) {
    return "Its driver supports CUDA " + version_words(version) + "; " + version_words(kernels.least_driver) +
           " or later is needed.";
  }
  if (facts.memory_bytes == 0) return "It has no memory of its own that can be used.";
  return {};
}

std::string pci_address(const DriverApi& api, DeviceId id) {
  std::array<char, 24> text = {};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", static_cast<unsigned>(attribute(api, kPciDomain, id)),
                static_cast<unsigned>(attribute(api, kPciBus, id)),
                static_cast<unsigned>(attribute(api, kPciDevice, id)));
  return text.data();
}

void ask(const DriverApi& api, DeviceId id, DeviceFacts& facts) {
  std::array<char, 256> name = {};
  check(api, api.device_name(name.data(), static_cast<int>(name.size()) - 1, id), "Asking the GPU for its name");
  facts.name = printable(name.data());
  Uuid uuid = {};
  check(api, api.device_uuid(&uuid, id), "Asking the GPU for its identity");
  facts.uuid = hex(uuid);
  facts.capability = attribute(api, kCapabilityMajor, id) * 10 + attribute(api, kCapabilityMinor, id);
  size_t bytes = 0;
  check(api, api.device_memory(&bytes, id), "Asking the GPU for its memory");
  facts.memory_bytes = bytes;
  facts.multiprocessors = static_cast<uint32_t>(attribute(api, kMultiprocessors, id));
  facts.l2_bytes = static_cast<uint32_t>(attribute(api, kL2CacheBytes, id));
  facts.shared_bytes = static_cast<uint32_t>(attribute(api, kMaxSharedBytesOfBlock, id));
  facts.integrated = attribute(api, kIntegrated, id) != 0;
  facts.pci_address = pci_address(api, id);
}

std::string driver_words(int version) {
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string module = printable(module_version(text));
  return (module.empty() ? "" : "NVIDIA " + module + ", ") + "CUDA " + version_words(version);
}

}  // namespace

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:15:33 UTC 2025": the first word that begins
// with a digit, of the line.
std::string module_version(const std::string& text) {
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  size_t begin = line.find("NVRM version");
  while (begin < line.size()) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    if (word.find_first_not_of("0123456789.") == std::string_view::npos && word.find('.') != std::string_view::npos) {
      return std::string(word);
    }
    begin = end + 1;
  }
  return {};
}

bool has_warpgroups(const DeviceFacts& facts) {
  return facts.capability == 90 && facts.architecture == 90;
}

std::string device_type(const DeviceFacts& facts) {
  return facts.integrated ? "integrated" : "discrete";
}

std::string device_identity(const DeviceFacts& facts) {
  std::string driver = facts.driver;
  std::erase_if(driver, [](char c) { return c == ' ' || c == ','; });
  return facts.uuid + "-" + driver;
}

std::string capability_words(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

std::string version_words(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::vector<DeviceFacts> list_devices(const DriverApi& api, const EmbeddedKernels& kernels) {
  if (const Result result = api.init(0); result != kSuccess) {
    if (result == kNoDevice) return {};
    throw error_of(api, result, "Starting the NVIDIA driver");
  }
  int version = 0, count = 0;
  check(api, api.driver_version(&version), "Asking the NVIDIA driver for its version");
  if (const Result result = api.device_count(&count); result != kSuccess && result != kNoDevice) {
    throw error_of(api, result, "Listing the NVIDIA GPUs");
  }
  const std::string driver = driver_words(version);
  std::vector<DeviceFacts> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceFacts facts;
    facts.ordinal = ordinal;
    facts.name = "NVIDIA GPU " + std::to_string(ordinal);
    facts.driver = driver;
    try {
      DeviceId id = 0;
      check(api, api.device(&id, ordinal), "Asking for the GPU");
      ask(api, id, facts);
      facts.architecture = architecture_of(kernels, facts.capability);
      facts.reason = refusal(api, facts, version, kernels, id);
    } catch (const Error& e) {
      facts.reason = e.what();
    }
    devices.push_back(std::move(facts));
  }
  return devices;
}

}  // namespace canopy::cuda
