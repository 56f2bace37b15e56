#pragma once
// Asking a physical device for the optional features that kernels use, and switching them on.

#include <volk.h>

#include <vector>

#include "engine/vulkan/device_report.h"
#include "engine/vulkan/newer_vulkan.h"

namespace canopy::vk {

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

/// What a Vulkan 1.3 device offers.
DeviceFeatures offered_features(VkPhysicalDevice device);

/// The combinations that a device with DeviceFeatures::cooperative_matrix multiplies; empty for another.
std::vector<MatrixShape> offered_matrix_shapes(VkInstance instance, VkPhysicalDevice device,
                                               const DeviceFeatures& features);

/// Sets in `chain` what `features` has, and what Canopy needs of every device.
void request(const DeviceFeatures& features, FeatureChain& chain);

/// The device extensions that `features` come from.
std::vector<const char*> extensions_of(const DeviceFeatures& features);

}  // namespace canopy::vk
