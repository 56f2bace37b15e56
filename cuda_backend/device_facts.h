#pragma once
// The NVIDIA GPUs of this machine, and why those that cannot be used are not.

#include <cstdint>
#include <string>
#include <vector>

#include "cuda_backend/driver_api.h"
#include "cuda_backend/embedded_kernels.h"

namespace canopy::cuda {

/// Compute capability 7.5: the first with the tensor-core instructions and the shared memory that the kernels need.
inline constexpr int kLeastCapability = 75;

struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  std::string uuid;      // hex
  int capability = 0;    // 89 is 8.9
  int architecture = 0;  // whose code it runs: 90 on a GPU of 12.0 where the kernels have none that is later
  uint64_t memory_bytes = 0;
  uint32_t multiprocessors = 0;
  uint32_t l2_bytes = 0;
  uint32_t shared_bytes = 0;  // of a block, at most
  bool integrated = false;
  std::string pci_address;  // "0000:03:00.0"
  std::string driver;       // "NVIDIA 580.65.06, CUDA 13.0"
  std::string reason;       // why it cannot be used, as a sentence; empty where it can

  bool usable() const { return reason.empty(); }
};

/// Asks each GPU; one that does not answer is listed with what the driver says. `kernels`: of this build, which decide
/// what GPUs and drivers can be used. Throws what error_of() makes of a driver that cannot list its devices; no devices
/// is an empty list.
std::vector<DeviceFacts> list_devices(const DriverApi& api, const EmbeddedKernels& kernels);

/// Whether products may be made for warpgroups: only machine code for 9.0 itself has them, which no later GPU runs.
bool has_warpgroups(const DeviceFacts& facts);

/// "integrated" or "discrete"
std::string device_type(const DeviceFacts& facts);

/// DeviceInfo::uuid of a device: changes with the GPU, its driver, and between backends.
std::string device_identity(const DeviceFacts& facts);

/// 13000 -> "13.0"
std::string version_words(int version);
/// 89 -> "8.9"
std::string capability_words(int capability);

/// The version in what NVIDIA's kernel module says of itself (/proc/driver/nvidia/version); empty where there is none.
std::string module_version(const std::string& text);

}  // namespace canopy::cuda
