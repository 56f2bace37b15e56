#include "engine/cuda_backend/device_facts.h"

#include <algorithm>
#include <array>

#include "engine/base/printable.h"
#include "engine/cuda_backend/check.h"

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

std::string refusal(const DriverApi& api, const DeviceFacts& facts, int version, int least_driver, DeviceId id) {
  if (facts.capability < kLeastCapability) {
    return "Its compute capability is " + std::to_string(facts.capability / 10) + "." +
           std::to_string(facts.capability % 10) + "; 7.5 or later is needed.";
  }
  if (attribute(api, kComputeMode, id) == kComputeModeProhibited) {
    return "Its owner has switched off computing on it (compute mode 'prohibited').";
  }
  if (least_driver == 0) return "This build of Canopy has no CUDA kernels; it was made without nvcc.";
  if (version < least_driver) {
    return "Its driver supports CUDA " + version_words(version) + "; " + version_words(least_driver) +
           " or later is needed.";
  }
  if (facts.memory_bytes == 0) return "It has no memory of its own that can be used.";
  return {};
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
}

}  // namespace

std::string version_words(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::vector<DeviceFacts> list_devices(const DriverApi& api, int least_driver) {
  if (const Result result = api.init(0); result != kSuccess) {
    if (result == kNoDevice) return {};
    throw error_of(api, result, "Starting the NVIDIA driver");
  }
  int version = 0, count = 0;
  check(api, api.driver_version(&version), "Asking the NVIDIA driver for its version");
  if (const Result result = api.device_count(&count); result != kSuccess && result != kNoDevice) {
    throw error_of(api, result, "Listing the NVIDIA GPUs");
  }
  std::vector<DeviceFacts> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceFacts facts;
    facts.ordinal = ordinal;
    facts.name = "NVIDIA GPU " + std::to_string(ordinal);
    facts.driver = "CUDA " + version_words(version);
    try {
      DeviceId id = 0;
      check(api, api.device(&id, ordinal), "Asking for the GPU");
      ask(api, id, facts);
      facts.reason = refusal(api, facts, version, least_driver, id);
    } catch (const Error& e) {
      facts.reason = e.what();
    }
    devices.push_back(std::move(facts));
  }
  return devices;
}

}  // namespace canopy::cuda
