#include "engine/vulkan/physical_device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/vulkan/instance.h"

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

/// A version as Vulkan packs it (VK_MAKE_API_VERSION), as "1.3.230".
std::string version_text(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}

}  // namespace

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

namespace {

// The numbers of VkComponentTypeKHR.
MatrixType matrix_type(uint32_t component) {
  constexpr MatrixType types[] = {MatrixType::f16, MatrixType::f32, MatrixType::f64, MatrixType::s8,
                                  MatrixType::s16, MatrixType::s32, MatrixType::s64, MatrixType::u8,
                                  MatrixType::u16, MatrixType::u32, MatrixType::u64};
  if (component == component_bfloat16) return MatrixType::bf16;
  return component < std::size(types) ? types[component] : MatrixType::other;
}

// The numbers of VkScopeKHR.
MatrixScope matrix_scope(uint32_t scope) {
  if (scope == 2) return MatrixScope::workgroup;
  return scope == 3 ? MatrixScope::subgroup : MatrixScope::other;
}

// Properties that decide about features. The structure of an extension is part of the chain only where the extension
// is.
struct FeatureProperties {
  VkPhysicalDeviceProperties2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceVulkan13Properties v13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES};
  CooperativeMatrixProperties matrix;

  FeatureProperties(VkPhysicalDevice device, bool with_matrix) {
    base.pNext = &v13;
    v13.pNext = with_matrix ? &matrix : nullptr;
    vkGetPhysicalDeviceProperties2(device, &base);
  }
};

}  // namespace

FeatureChain::FeatureChain(bool with_statistics, bool with_matrix, bool with_bfloat16) {
  base.pNext = &v11;
  v11.pNext = &v12;
  v12.pNext = &v13;
  void** end = &v13.pNext;
  const auto append = [&end](auto& structure) {
    *end = &structure;
    end = &structure.pNext;
  };
  if (with_statistics) append(statistics);
  if (with_matrix) append(matrix);
  if (with_bfloat16) append(bfloat16);
}

namespace {

/// What a Vulkan 1.3 device offers.
DeviceFeatures offered_features(VkPhysicalDevice device) {
  const bool has_statistics = has_extension(device, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  // RADV answers questions about cooperative matrices on GPUs that have none: the extension decides.
  const bool has_matrix = has_extension(device, cooperative_matrix_extension);
  const bool has_bfloat16 = has_extension(device, bfloat16_extension);
  FeatureChain present(has_statistics, has_matrix, has_bfloat16);
  vkGetPhysicalDeviceFeatures2(device, &present.base);
  const FeatureProperties properties(device, has_matrix);
  const VkPhysicalDeviceVulkan13Properties& v13 = properties.v13;

  DeviceFeatures features;
  features.memory_budget = has_extension(device, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  features.subgroup_size_control =
      present.v13.subgroupSizeControl == VK_TRUE && (v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  features.compute_full_subgroups = present.v13.computeFullSubgroups == VK_TRUE;
  features.pipeline_statistics = present.statistics.pipelineExecutableInfo == VK_TRUE;
  features.shader_float16 = present.v12.shaderFloat16 == VK_TRUE;
  features.shader_int8 = present.v12.shaderInt8 == VK_TRUE;
  features.storage_16bit = present.v11.storageBuffer16BitAccess == VK_TRUE;
  features.storage_8bit = present.v12.storageBuffer8BitAccess == VK_TRUE;
  features.shader_int64 = present.base.features.shaderInt64 == VK_TRUE;
  features.shader_int16 = present.base.features.shaderInt16 == VK_TRUE;
  features.integer_dot_product = present.v13.shaderIntegerDotProduct == VK_TRUE;
  features.packed_dot_s8 = v13.integerDotProduct4x8BitPackedSignedAccelerated == VK_TRUE;
  features.packed_dot_u8 = v13.integerDotProduct4x8BitPackedUnsignedAccelerated == VK_TRUE;
  features.packed_dot_mixed = v13.integerDotProduct4x8BitPackedMixedSignednessAccelerated == VK_TRUE;
  features.buffer_array_indexing = present.base.features.shaderUniformBufferArrayDynamicIndexing == VK_TRUE &&
                                   present.base.features.shaderStorageBufferArrayDynamicIndexing == VK_TRUE;
  features.memory_model = present.v12.vulkanMemoryModel == VK_TRUE;
  features.memory_model_device_scope = present.v12.vulkanMemoryModelDeviceScope == VK_TRUE;
  features.cooperative_matrix = present.matrix.cooperativeMatrix == VK_TRUE && features.memory_model &&
                                (properties.matrix.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  features.bfloat16 = present.bfloat16.shaderBFloat16Type == VK_TRUE;
  features.bfloat16_matrix = features.cooperative_matrix && present.bfloat16.shaderBFloat16CooperativeMatrix == VK_TRUE;
  return features;
}

/// The combinations that a device with DeviceFeatures::cooperative_matrix multiplies; empty for another.
std::vector<MatrixShape> offered_matrix_shapes(VkInstance instance, VkPhysicalDevice device,
                                               const DeviceFeatures& features) {
  if (!features.cooperative_matrix) return {};
  const auto list = reinterpret_cast<GetCooperativeMatrixShapes>(
      vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (list == nullptr) return {};
  uint32_t count = 0;
  check_vk(list(device, &count, nullptr), "listing the shapes of cooperative matrices");
  std::vector<CooperativeMatrixShape> found(count);
  check_vk(list(device, &count, found.data()), "listing the shapes of cooperative matrices");
  found.resize(count);
  std::vector<MatrixShape> shapes;
  for (const CooperativeMatrixShape& shape : found) {
    shapes.push_back({.m = shape.m,
                      .n = shape.n,
                      .k = shape.k,
                      .a = matrix_type(shape.a_type),
                      .b = matrix_type(shape.b_type),
                      .c = matrix_type(shape.c_type),
                      .result = matrix_type(shape.result_type),
                      .scope = matrix_scope(shape.scope),
                      .saturating = shape.saturating == VK_TRUE});
  }
  return shapes;
}

}  // namespace

void request(const DeviceFeatures& features, FeatureChain& chain) {
  chain.base.features.shaderInt64 = features.shader_int64;
  chain.base.features.shaderInt16 = features.shader_int16;
  chain.base.features.shaderUniformBufferArrayDynamicIndexing = features.buffer_array_indexing;
  chain.base.features.shaderStorageBufferArrayDynamicIndexing = features.buffer_array_indexing;
  chain.v11.storageBuffer16BitAccess = features.storage_16bit;
  chain.v12.uniformBufferStandardLayout = VK_TRUE;  // every Vulkan 1.2 device has it
  chain.v12.storageBuffer8BitAccess = features.storage_8bit;
  chain.v12.shaderFloat16 = features.shader_float16;
  chain.v12.shaderInt8 = features.shader_int8;
  chain.v12.vulkanMemoryModel = features.memory_model;
  chain.v12.vulkanMemoryModelDeviceScope = features.memory_model_device_scope;
  chain.v13.synchronization2 = VK_TRUE;
  chain.v13.maintenance4 = VK_TRUE;
  chain.v13.subgroupSizeControl = features.subgroup_size_control;
  chain.v13.computeFullSubgroups = features.compute_full_subgroups;
  chain.v13.shaderIntegerDotProduct = features.integer_dot_product;
  chain.statistics.pipelineExecutableInfo = features.pipeline_statistics;
  chain.matrix.cooperativeMatrix = features.cooperative_matrix;
  chain.bfloat16.shaderBFloat16Type = features.bfloat16;
  chain.bfloat16.shaderBFloat16CooperativeMatrix = features.bfloat16_matrix;
}

std::vector<const char*> extensions_of(const DeviceFeatures& features) {
  std::vector<const char*> names;
  if (features.memory_budget) names.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (features.pipeline_statistics) names.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  if (features.cooperative_matrix) names.push_back(cooperative_matrix_extension);
  if (features.bfloat16) names.push_back(bfloat16_extension);
  return names;
}

namespace {

std::string vendor_name(uint32_t id) {
  switch (id) {
    case 0x1002: return "AMD";
    case 0x10DE: return "NVIDIA";
    case 0x8086: return "Intel";
    case 0x13B5: return "ARM";
    case 0x5143: return "Qualcomm";
    case 0x106B: return "Apple";
    case 0x1AE0: return "Google";
    case VK_VENDOR_ID_MESA: return "Mesa";
    default: break;
  }
  char text[16];
  std::snprintf(text, sizeof text, "0x%04X", id);
  return text;
}

DeviceType device_type(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return DeviceType::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return DeviceType::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return DeviceType::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return DeviceType::cpu;
    default: return DeviceType::other;
  }
}

std::vector<VkQueueFamilyProperties> queue_families(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  families.resize(count);
  return families;
}

// Properties of a 1.3 device.
struct Properties {
  VkPhysicalDeviceProperties2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceVulkan11Properties v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
  VkPhysicalDeviceVulkan12Properties v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceVulkan13Properties v13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES};

  explicit Properties(VkPhysicalDevice device) {
    base.pNext = &v11;
    v11.pNext = &v12;
    v12.pNext = &v13;
    vkGetPhysicalDeviceProperties2(device, &base);
  }
};

DeviceLimits limits_of(const Properties& p, uint32_t timestamp_bits) {
  const VkPhysicalDeviceLimits& base = p.base.properties.limits;
  DeviceLimits limits;
  limits.max_storage_range = base.maxStorageBufferRange;
  limits.max_uniform_range = base.maxUniformBufferRange;
  limits.max_allocation = std::min<uint64_t>(p.v11.maxMemoryAllocationSize, p.v13.maxBufferSize);
  limits.max_allocations = base.maxMemoryAllocationCount;
  limits.storage_alignment = base.minStorageBufferOffsetAlignment;
  limits.uniform_alignment = base.minUniformBufferOffsetAlignment;
  limits.atom_size = base.nonCoherentAtomSize;
  limits.max_push_bytes = base.maxPushConstantsSize;
  limits.max_shared_bytes = base.maxComputeSharedMemorySize;
  limits.max_invocations = base.maxComputeWorkGroupInvocations;
  for (size_t axis = 0; axis < 3; ++axis) {
    limits.max_group_size[axis] = base.maxComputeWorkGroupSize[axis];
    limits.max_group_count[axis] = base.maxComputeWorkGroupCount[axis];
  }
  limits.max_storage_buffers = std::min(base.maxPerStageDescriptorStorageBuffers, base.maxDescriptorSetStorageBuffers);
  limits.max_uniform_buffers = std::min(base.maxPerStageDescriptorUniformBuffers, base.maxDescriptorSetUniformBuffers);
  limits.subgroup_size = p.v11.subgroupSize;
  limits.min_subgroup_size = p.v13.minSubgroupSize;
  limits.max_subgroup_size = p.v13.maxSubgroupSize;
  limits.max_subgroups = p.v13.maxComputeWorkgroupSubgroups;
  limits.timestamp_period_ns = base.timestampPeriod;
  limits.timestamp_valid_bits = timestamp_bits;
  return limits;
}

DeviceFacts facts_of(VkPhysicalDevice device, const Properties& properties) {
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan13Features v13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  features.pNext = &v13;
  vkGetPhysicalDeviceFeatures2(device, &features);

  DeviceFacts facts;
  facts.api_version = properties.base.properties.apiVersion;
  const std::optional<uint32_t> family = compute_queue_family(device);
  facts.has_compute_queue = family.has_value();
  facts.has_synchronization2 = v13.synchronization2 == VK_TRUE;
  facts.has_maintenance4 = v13.maintenance4 == VK_TRUE;
  facts.limits = limits_of(properties, family ? queue_families(device)[*family].timestampValidBits : 0);
  return facts;
}

uint64_t device_local_bytes(VkPhysicalDevice device) {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(device, &memory);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
      bytes += memory.memoryHeaps[i].size;
    }
  }
  return bytes;
}

std::string hex(std::span<const uint8_t> bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t b : bytes) {
    text += digits[b >> 4];
    text += digits[b & 15];
  }
  return text;
}

/// "0000:03:00.0"; empty where the driver does not tell.
std::string pci_address_of(VkPhysicalDevice device) {
  if (!has_extension(device, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) return {};
  VkPhysicalDevicePCIBusInfoPropertiesEXT bus{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  properties.pNext = &bus;
  vkGetPhysicalDeviceProperties2(device, &properties);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", bus.pciDomain, bus.pciBus, bus.pciDevice,
                bus.pciFunction);
  return text.data();
}

}  // namespace

CacheIdentity identity_of(VkPhysicalDevice device) {
  const Properties properties(device);
  const VkPhysicalDeviceProperties& base = properties.base.properties;
  CacheIdentity identity;
  identity.vendor_id = base.vendorID;
  identity.device_id = base.deviceID;
  identity.driver_version = base.driverVersion;
  std::memcpy(identity.device_uuid.data(), properties.v11.deviceUUID, VK_UUID_SIZE);
  std::memcpy(identity.driver_uuid.data(), properties.v11.driverUUID, VK_UUID_SIZE);
  std::memcpy(identity.cache_uuid.data(), base.pipelineCacheUUID, VK_UUID_SIZE);
  return identity;
}

std::optional<uint32_t> compute_queue_family(VkPhysicalDevice device) {
  const std::vector<VkQueueFamilyProperties> families = queue_families(device);
  for (uint32_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0 && families[i].queueCount > 0) {
      return i;
    }
  }
  return std::nullopt;
}

DeviceReport report_device(VkInstance instance, VkPhysicalDevice device, uint32_t index) {
  VkPhysicalDeviceProperties base{};
  vkGetPhysicalDeviceProperties(device, &base);
  DeviceReport report;
  report.index = index;
  report.name = base.deviceName;
  report.type = device_type(base.deviceType);
  report.vendor_id = base.vendorID;
  report.device_id = base.deviceID;
  report.vendor = vendor_name(base.vendorID);
  report.api_version = version_text(base.apiVersion);
  report.driver_name = "unknown driver";
  report.driver_version = version_text(base.driverVersion);
  report.memory_bytes = device_local_bytes(device);
  if (base.apiVersion < VK_API_VERSION_1_3) {  // an older device knows nothing of the structures below
    report.reason = unusable_reason({.api_version = base.apiVersion});
    return report;
  }
  const Properties properties(device);
  report.driver_name = properties.v12.driverName;
  if (properties.v12.driverInfo[0] != '\0') {
    report.driver_version = properties.v12.driverInfo;
  }
  report.uuid = hex(properties.v11.deviceUUID) + "-" + hex(properties.v11.driverUUID);
  report.pci_address = pci_address_of(device);
  const DeviceFacts facts = facts_of(device, properties);
  report.limits = facts.limits;
  report.features = offered_features(device);
  report.matrix_shapes = offered_matrix_shapes(instance, device, report.features);
  if (report.matrix_shapes.empty()) report.features.cooperative_matrix = report.features.bfloat16_matrix = false;
  report.limits.pinned_subgroup = pinned_subgroup_size(report.limits, report.features.subgroup_size_control);
  report.reason = unusable_reason(facts);
  report.usable = report.reason.empty();
  return report;
}

bool has_extension(VkPhysicalDevice device, const char* name) {
  uint32_t count = 0;
  check_vk(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr), "listing the device's extensions");
  std::vector<VkExtensionProperties> extensions(count);
  check_vk(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data()),
           "listing the device's extensions");
  extensions.resize(count);
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

}  // namespace canopy::vk
