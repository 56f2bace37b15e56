#pragma once
// A physical device before it is opened: what it is, what it offers, and whether Canopy can use it.

#include <volk.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/vulkan/kernel.h"

namespace canopy::vk {

// What Canopy uses of extensions that are younger than the Vulkan headers of Debian 12 (1.3.239), declared here under
// names of our own, so that any headers from 1.3 on do.

// VK_KHR_cooperative_matrix
constexpr const char* cooperative_matrix_extension = "VK_KHR_cooperative_matrix";
constexpr auto type_cooperative_matrix_features = static_cast<VkStructureType>(1000506000);
constexpr auto type_cooperative_matrix_shape = static_cast<VkStructureType>(1000506001);
constexpr auto type_cooperative_matrix_properties = static_cast<VkStructureType>(1000506002);

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR
struct CooperativeMatrixFeatures {
  VkStructureType sType = type_cooperative_matrix_features;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

/// VkPhysicalDeviceCooperativeMatrixPropertiesKHR
struct CooperativeMatrixProperties {
  VkStructureType sType = type_cooperative_matrix_properties;
  void* pNext = nullptr;
  VkShaderStageFlags supportedStages = 0;
};

/// VkCooperativeMatrixPropertiesKHR: one combination of sizes and types. Types are VkComponentTypeKHR, the scope is
/// VkScopeKHR.
struct CooperativeMatrixShape {
  VkStructureType sType = type_cooperative_matrix_shape;
  void* pNext = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  uint32_t a_type = 0, b_type = 0, c_type = 0, result_type = 0;
  VkBool32 saturating = VK_FALSE;
  uint32_t scope = 0;
};

/// vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR
using GetCooperativeMatrixShapes = VkResult(VKAPI_PTR*)(VkPhysicalDevice device, uint32_t* count,
                                                        CooperativeMatrixShape* shapes);

// VK_KHR_shader_bfloat16
constexpr const char* bfloat16_extension = "VK_KHR_shader_bfloat16";
constexpr auto type_bfloat16_features = static_cast<VkStructureType>(1000141000);
constexpr uint32_t component_bfloat16 = 1000141000;

/// VkPhysicalDeviceShaderBfloat16FeaturesKHR
struct Bfloat16Features {
  VkStructureType sType = type_bfloat16_features;
  void* pNext = nullptr;
  VkBool32 shaderBFloat16Type = VK_FALSE;
  VkBool32 shaderBFloat16DotProduct = VK_FALSE;
  VkBool32 shaderBFloat16CooperativeMatrix = VK_FALSE;
};

// The description of a physical device before it is opened, and whether Canopy can use it. Plain data, so that tests
// can make up devices.

enum class DeviceType { discrete, integrated, virtual_gpu, cpu, other };

/// "discrete", "integrated", "virtual", "software", "other": also the words that select a device.
std::string_view to_string(DeviceType type);

/// Limits of a device; bytes unless said otherwise. Tests may lower some of them (ContextOptions).
struct DeviceLimits {
  uint64_t max_storage_range = 0;  // largest storage buffer binding
  uint64_t max_uniform_range = 0;  // largest uniform buffer binding
  uint64_t max_allocation = 0;     // largest single buffer
  uint32_t max_allocations = 0;    // how many allocations may exist at once
  uint64_t storage_alignment = 1;  // of a storage binding's offset
  uint64_t uniform_alignment = 1;  // of a uniform binding's offset
  uint64_t atom_size = 1;          // granularity of flushing mapped memory that is not coherent
  uint32_t max_push_bytes = 0;
  uint32_t max_shared_bytes = 0;                 // of a workgroup
  uint32_t max_invocations = 0;                  // of a workgroup
  std::array<uint32_t, 3> max_group_size = {};   // invocations of a workgroup along x, y, z
  std::array<uint32_t, 3> max_group_count = {};  // workgroups of a dispatch along x, y, z
  uint32_t max_storage_buffers = 0;              // in one kernel
  uint32_t max_uniform_buffers = 0;
  uint32_t subgroup_size = 0;  // invocations
  uint32_t min_subgroup_size = 0;
  uint32_t max_subgroup_size = 0;
  uint32_t max_subgroups = 0;    // of a workgroup that asks for its subgroup size
  uint32_t pinned_subgroup = 0;  // the subgroup size that kernels ask for (pinned_subgroup_size); 0: there is no choice
  double timestamp_period_ns = 0;     // nanoseconds per tick
  uint32_t timestamp_valid_bits = 0;  // of the queue used; 0: no timestamps
};

/// The least that a usable device offers, and all that the kernels of the baseline are written for. What Vulkan 1.3
/// itself promises stands for limits that unusable_reason() does not ask about.
DeviceLimits baseline_limits();

/// The subgroup size that kernels ask for where the driver would choose one for each kernel: 32 where the device offers
/// it (NVIDIA has no other, RDNA's waves are as wide, and so may Intel's be), else the device's usual one. 0 without
/// `control`, DeviceFeatures::subgroup_size_control.
uint32_t pinned_subgroup_size(const DeviceLimits& limits, bool control);

/// Optional features: those that a device offers (DeviceReport), or those that it was opened with (Context).
struct DeviceFeatures {
  bool memory_budget = false;          // VK_EXT_memory_budget
  bool subgroup_size_control = false;  // a kernel may ask for its subgroup size
  bool compute_full_subgroups = false;
  bool pipeline_statistics = false;  // VK_KHR_pipeline_executable_properties; open only where asked for
  bool shader_float16 = false;       // arithmetic on halves
  bool shader_int8 = false;
  bool storage_16bit = false;
  bool storage_8bit = false;
  bool shader_int64 = false;
  bool shader_int16 = false;
  bool integer_dot_product = false;
  bool packed_dot_s8 = false;          // four products of 8-bit numbers in an instruction: signed,
  bool packed_dot_u8 = false;          // unsigned,
  bool packed_dot_mixed = false;       // and one of each
  bool buffer_array_indexing = false;  // arrays of buffer bindings indexed by a value alike in all invocations
  bool memory_model = false;           // the Vulkan memory model, which cooperative matrices are written in
  bool memory_model_device_scope = false;
  bool cooperative_matrix = false;  // VK_KHR_cooperative_matrix in compute shaders, with at least one MatrixShape
  bool bfloat16 = false;            // VK_KHR_shader_bfloat16
  bool bfloat16_matrix = false;     // also as operands of cooperative matrices
};

/// The types of a cooperative matrix's elements; `other` is one that this version of Canopy does not know.
enum class MatrixType { f16, f32, f64, bf16, s8, s16, s32, s64, u8, u16, u32, u64, other };
enum class MatrixScope { subgroup, workgroup, other };

/// "f16", "subgroup" …
std::string_view to_string(MatrixType type);
std::string_view to_string(MatrixScope scope);

/// A product that a device's matrix cores compute: result[m][n] = a[m][k] b[k][n] + c[m][n], by the invocations of a
/// scope.
struct MatrixShape {
  uint32_t m = 0, n = 0, k = 0;
  MatrixType a = MatrixType::other;
  MatrixType b = MatrixType::other;
  MatrixType c = MatrixType::other;
  MatrixType result = MatrixType::other;
  MatrixScope scope = MatrixScope::other;
  bool saturating = false;  // integer sums stop at the largest number
};

struct DeviceReport {
  uint32_t index = 0;  // position in the loader's order
  std::string name;
  std::string uuid;              // DeviceInfo::uuid; empty below Vulkan 1.3
  std::string pci_address = {};  // DeviceInfo::pci_address
  DeviceType type = DeviceType::other;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  std::string vendor;          // "AMD", "NVIDIA" …, or the id in hexadecimal
  std::string driver_name;     // "radv", "llvmpipe" …
  std::string driver_version;  // as the driver words it
  std::string api_version;     // "1.3.230"
  uint64_t memory_bytes = 0;   // the device-local heaps together
  DeviceLimits limits;
  DeviceFeatures features;                 // all that it offers
  std::vector<MatrixShape> matrix_shapes;  // in the driver's order; empty without features.cooperative_matrix
  bool usable = false;
  std::string reason;  // why it is not usable; empty if it is
};

/// The properties that decide whether a device can be used.
struct DeviceFacts {
  uint32_t api_version = 0;  // VK_MAKE_API_VERSION
  bool has_compute_queue = false;
  bool has_synchronization2 = false;
  bool has_maintenance4 = false;
  DeviceLimits limits;
};

/// Empty if the device can be used, otherwise every reason why not as one sentence with actual and required values.
std::string unusable_reason(const DeviceFacts& facts);

// Asking a physical device for the optional features that kernels use, and switching them on.

/// The chain of feature structures, to ask with and to enable with. A structure of an extension is part of it only
/// where the extension is.
struct FeatureChain {
  VkPhysicalDeviceFeatures2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features v13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  CooperativeMatrixFeatures matrix;
  Bfloat16Features bfloat16;

  FeatureChain(bool with_statistics, bool with_matrix, bool with_bfloat16);
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;
};

/// Sets in `chain` what `features` has, and what Canopy needs of every device.
void request(const DeviceFeatures& features, FeatureChain& chain);

/// The device extensions that `features` come from.
std::vector<const char*> extensions_of(const DeviceFeatures& features);

// Asking a physical device what it is.

/// The queue family to compute on, if there is one: the first with compute, as it is the one every driver tests most.
std::optional<uint32_t> compute_queue_family(VkPhysicalDevice device);

/// Everything in DeviceReport, `usable` and `reason` decided.
DeviceReport report_device(VkInstance instance, VkPhysicalDevice device, uint32_t index);

/// Of a Vulkan 1.3 device.
CacheIdentity identity_of(VkPhysicalDevice device);

bool has_extension(VkPhysicalDevice device, const char* name);

}  // namespace canopy::vk
