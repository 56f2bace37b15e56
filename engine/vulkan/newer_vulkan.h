#pragma once
// What Canopy uses of extensions that are younger than the Vulkan headers of Debian 12 (1.3.239), declared here under
// names of our own, so that any headers from 1.3 on do.

#include <volk.h>

#include <cstdint>

namespace canopy::vk {

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

}  // namespace canopy::vk
