#include "engine/vulkan/physical_device.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "engine/vulkan/check.h"
#include "engine/vulkan/device_features.h"

namespace canopy::vk {
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
