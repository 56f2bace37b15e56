#pragma once
// The description of a physical device before it is opened, and whether Canopy can use it. Plain data, so that tests
// can make up devices.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace canopy::vk {

enum class DeviceType { discrete, integrated, virtual_gpu, cpu, other };

/// "discrete", "integrated", "virtual", "cpu", "other": also the words that select a device.
std::string_view to_string(DeviceType type);

/// Limits of a device; bytes unless said otherwise. Tests may lower some of them (ContextOptions).
struct DeviceLimits {
  uint64_t max_storage_range = 0;   // largest storage buffer binding
  uint64_t max_uniform_range = 0;   // largest uniform buffer binding
  uint64_t max_texel_elements = 0;  // largest texel buffer view, in texels
  uint64_t max_allocation = 0;      // largest single buffer
  uint32_t max_allocations = 0;     // how many allocations may exist at once
  uint64_t storage_alignment = 1;   // of a storage binding's offset
  uint64_t uniform_alignment = 1;   // of a uniform binding's offset
  uint64_t texel_alignment = 1;     // of a texel view's offset
  uint64_t atom_size = 1;           // granularity of flushing mapped memory that is not coherent
  uint32_t max_push_bytes = 0;
  uint32_t max_shared_bytes = 0;                 // of a workgroup
  uint32_t max_invocations = 0;                  // of a workgroup
  std::array<uint32_t, 3> max_group_size = {};   // invocations of a workgroup along x, y, z
  std::array<uint32_t, 3> max_group_count = {};  // workgroups of a dispatch along x, y, z
  uint32_t max_storage_buffers = 0;              // in one kernel
  uint32_t max_uniform_buffers = 0;
  uint32_t max_sampled_images = 0;  // texel buffers count as these
  uint32_t subgroup_size = 0;       // invocations
  uint32_t min_subgroup_size = 0;
  uint32_t max_subgroup_size = 0;
  double timestamp_period_ns = 0;     // nanoseconds per tick
  uint32_t timestamp_valid_bits = 0;  // of the queue used; 0: no timestamps
};

/// The least that a usable device offers, and all that the kernels of the baseline are written for. What Vulkan 1.3
/// itself promises stands for limits that unusable_reason() does not ask about.
DeviceLimits baseline_limits();

struct DeviceReport {
  uint32_t index = 0;  // position in the loader's order
  std::string name;
  std::string uuid;  // DeviceInfo::uuid; empty below Vulkan 1.3
  DeviceType type = DeviceType::other;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  std::string vendor;          // "AMD", "NVIDIA" …, or the id in hexadecimal
  std::string driver_name;     // "radv", "llvmpipe" …
  std::string driver_version;  // as the driver words it
  std::string api_version;     // "1.3.230"
  uint64_t memory_bytes = 0;   // the device-local heaps together
  DeviceLimits limits;
  bool usable = false;
  std::string reason;  // why it is not usable; empty if it is
};

/// The properties that decide whether a device can be used (design.md section 6).
struct DeviceFacts {
  uint32_t api_version = 0;  // VK_MAKE_API_VERSION
  bool has_compute_queue = false;
  bool has_synchronization2 = false;
  bool has_maintenance4 = false;
  DeviceLimits limits;
};

/// A version as Vulkan packs it (VK_MAKE_API_VERSION), as "1.3.230".
std::string version_text(uint32_t version);

/// Empty if the device can be used, otherwise every reason why not as one sentence with actual and required values.
std::string unusable_reason(const DeviceFacts& facts);

}  // namespace canopy::vk
