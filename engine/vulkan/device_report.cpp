#include "engine/vulkan/device_report.h"

#include <volk.h>

namespace canopy::vk {
namespace {

// The least that the baseline kernels are written for.
constexpr uint64_t required_storage_range = 128ull << 20;
constexpr uint64_t required_uniform_range = 16ull << 10;
constexpr uint64_t required_allocation = 1ull << 30;
constexpr uint32_t required_shared_bytes = 16u << 10;
constexpr uint32_t required_invocations = 256;
constexpr uint32_t required_push_bytes = 128;
constexpr uint32_t required_storage_buffers = 8;  // the most that one kernel binds
constexpr uint32_t least_subgroup = 4;
constexpr uint32_t largest_subgroup = 64;

class Reasons {
 public:
  void require(bool met, const std::string& reason) {
    if (!met) {
      text_ += (text_.empty() ? "" : "; ") + reason;
    }
  }
  void require_at_least(uint64_t actual, uint64_t required, const std::string& what) {
    require(actual >= required,
            what + " is " + std::to_string(actual) + ", at least " + std::to_string(required) + " is needed");
  }
  std::string sentence() const { return text_.empty() ? "" : text_ + "."; }

 private:
  std::string text_;
};

}  // namespace

std::string version_text(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}

std::string_view to_string(DeviceType type) {
  switch (type) {
    case DeviceType::discrete: return "discrete";
    case DeviceType::integrated: return "integrated";
    case DeviceType::virtual_gpu: return "virtual";
    case DeviceType::cpu: return "cpu";
    case DeviceType::other: break;
  }
  return "other";
}

std::string unusable_reason(const DeviceFacts& facts) {
  Reasons reasons;
  if (facts.api_version < VK_API_VERSION_1_3) {
    // What follows is only known of a 1.3 device.
    reasons.require(false, "Vulkan 1.3 is needed, the driver offers " + version_text(facts.api_version));
    return reasons.sentence();
  }
  const DeviceLimits& limits = facts.limits;
  reasons.require(facts.has_compute_queue, "it has no compute queue");
  reasons.require(facts.has_synchronization2, "the feature synchronization2 is missing");
  reasons.require(facts.has_maintenance4, "the feature maintenance4 is missing");
  reasons.require_at_least(limits.max_storage_range, required_storage_range, "the largest storage buffer, in bytes,");
  reasons.require_at_least(limits.max_uniform_range, required_uniform_range, "the largest uniform buffer, in bytes,");
  reasons.require_at_least(limits.max_allocation, required_allocation, "the largest allocation, in bytes,");
  reasons.require_at_least(limits.max_shared_bytes, required_shared_bytes, "the shared memory, in bytes,");
  reasons.require_at_least(limits.max_invocations, required_invocations, "the largest workgroup");
  reasons.require_at_least(limits.max_push_bytes, required_push_bytes, "the size of push constants, in bytes,");
  reasons.require_at_least(limits.max_storage_buffers, required_storage_buffers, "the number of storage buffers");
  reasons.require(limits.subgroup_size >= least_subgroup && limits.subgroup_size <= largest_subgroup,
                  "the subgroup size is " + std::to_string(limits.subgroup_size) + ", 4 to 64 is needed");
  return reasons.sentence();
}

}  // namespace canopy::vk
