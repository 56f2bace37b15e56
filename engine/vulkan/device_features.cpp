#include "engine/vulkan/device_features.h"

#include "engine/vulkan/check.h"
#include "engine/vulkan/physical_device.h"

namespace canopy::vk {
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

}  // namespace canopy::vk
