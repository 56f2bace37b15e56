#include "engine/vulkan/device_report.h"

#include <volk.h>

namespace canopy::vk {
namespace {

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
    case DeviceType::cpu: return "software";
    case DeviceType::other: break;
  }
  return "other";
}

std::string_view to_string(MatrixType type) {
  switch (type) {
    case MatrixType::f16: return "f16";
    case MatrixType::f32: return "f32";
    case MatrixType::f64: return "f64";
    case MatrixType::bf16: return "bf16";
    case MatrixType::s8: return "s8";
    case MatrixType::s16: return "s16";
    case MatrixType::s32: return "s32";
    case MatrixType::s64: return "s64";
    case MatrixType::u8: return "u8";
    case MatrixType::u16: return "u16";
    case MatrixType::u32: return "u32";
    case MatrixType::u64: return "u64";
    case MatrixType::other: break;
  }
  return "other";
}

std::string_view to_string(MatrixScope scope) {
  switch (scope) {
    case MatrixScope::subgroup: return "subgroup";
    case MatrixScope::workgroup: return "workgroup";
    case MatrixScope::other: break;
  }
  return "other";
}

const MatrixShape* find_matrix_shape(std::span<const MatrixShape> shapes, MatrixType operand, MatrixType sum) {
  for (const MatrixShape& shape : shapes) {
    if (shape.a == operand && shape.b == operand && shape.c == sum && shape.result == sum &&
        shape.scope == MatrixScope::subgroup && !shape.saturating) {
      return &shape;
    }
  }
  return nullptr;
}

uint32_t pinned_subgroup_size(const DeviceLimits& limits, bool control) {
  constexpr uint32_t usual = 32;
  if (!control) return 0;
  return limits.min_subgroup_size <= usual && usual <= limits.max_subgroup_size ? usual : limits.subgroup_size;
}

DeviceLimits baseline_limits() {
  DeviceLimits limits;
  limits.max_storage_range = 128ull << 20;
  limits.max_uniform_range = 16ull << 10;
  limits.max_allocation = 1ull << 30;
  limits.max_allocations = 4096;
  limits.max_push_bytes = 128;
  limits.max_shared_bytes = 16u << 10;
  limits.max_invocations = 256;
  limits.max_group_size = {128, 128, 64};
  limits.max_group_count = {65535, 65535, 65535};
  limits.max_storage_buffers = 13;  // of project_heads
  limits.max_uniform_buffers = 12;
  limits.subgroup_size = least_subgroup;
  limits.min_subgroup_size = least_subgroup;
  limits.max_subgroup_size = largest_subgroup;
  return limits;
}

std::string unusable_reason(const DeviceFacts& facts) {
  Reasons reasons;
  if (facts.api_version < VK_API_VERSION_1_3) {
    // The properties below can be queried of a 1.3 device only.
    reasons.require(false, "Vulkan 1.3 is needed, the driver offers " + version_text(facts.api_version));
    return reasons.sentence();
  }
  const DeviceLimits& limits = facts.limits;
  const DeviceLimits baseline = baseline_limits();
  reasons.require(facts.has_compute_queue, "it has no compute queue");
  reasons.require(facts.has_synchronization2, "the feature synchronization2 is missing");
  reasons.require(facts.has_maintenance4, "the feature maintenance4 is missing");
  reasons.require_at_least(limits.max_storage_range, baseline.max_storage_range,
                           "the largest storage buffer, in bytes,");
  reasons.require_at_least(limits.max_uniform_range, baseline.max_uniform_range,
                           "the largest uniform buffer, in bytes,");
  reasons.require_at_least(limits.max_allocation, baseline.max_allocation, "the largest allocation, in bytes,");
  reasons.require_at_least(limits.max_shared_bytes, baseline.max_shared_bytes, "the shared memory, in bytes,");
  reasons.require_at_least(limits.max_invocations, baseline.max_invocations, "the largest workgroup");
  reasons.require_at_least(limits.max_push_bytes, baseline.max_push_bytes, "the size of push constants, in bytes,");
  reasons.require_at_least(limits.max_storage_buffers, baseline.max_storage_buffers, "the number of storage buffers");
  reasons.require(limits.subgroup_size >= least_subgroup && limits.subgroup_size <= largest_subgroup,
                  "the subgroup size is " + std::to_string(limits.subgroup_size) + ", 4 to 64 is needed");
  return reasons.sentence();
}

}  // namespace canopy::vk
