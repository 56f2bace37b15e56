// What a device report says of optional features, over made-up drivers: volk's entry points are plain pointers, so a
// test can replace them.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/vulkan/physical_device.h"

namespace canopy::vk {
namespace {

// A driver for one device, which is whatever a test makes of these fields.
struct FakeDriver {
  std::vector<std::string> extensions;
  VkPhysicalDeviceFeatures base{};
  VkPhysicalDeviceVulkan11Features v11{};
  VkPhysicalDeviceVulkan12Features v12{};
  VkPhysicalDeviceVulkan13Features v13{};
  VkPhysicalDeviceVulkan13Properties properties{};
  VkBool32 matrix_feature = VK_TRUE;
  VkShaderStageFlags matrix_stages = VK_SHADER_STAGE_COMPUTE_BIT;
  VkBool32 bfloat16_feature = VK_TRUE;
  bool has_matrix_function = true;
  std::vector<CooperativeMatrixShape> shapes;
  std::vector<VkStructureType> asked;  // structures of extensions in the chains of questions
};
FakeDriver* fake = nullptr;

// Copies the fields behind sType and pNext.
template <class T>
void answer(VkBaseOutStructure* to, const T& from) {
  constexpr size_t head = sizeof(VkBaseOutStructure);
  std::memcpy(reinterpret_cast<char*>(to) + head, reinterpret_cast<const char*>(&from) + head, sizeof(T) - head);
}

void VKAPI_CALL fake_features(VkPhysicalDevice /*device*/, VkPhysicalDeviceFeatures2* features) {
  features->features = fake->base;
  for (auto* s = static_cast<VkBaseOutStructure*>(features->pNext); s != nullptr; s = s->pNext) {
    switch (s->sType) {
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES: answer(s, fake->v11); break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES: answer(s, fake->v12); break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES: answer(s, fake->v13); break;
      default:
        fake->asked.push_back(s->sType);
        if (s->sType == type_cooperative_matrix_features) {
          reinterpret_cast<CooperativeMatrixFeatures*>(s)->cooperativeMatrix = fake->matrix_feature;
        } else if (s->sType == type_bfloat16_features) {
          auto* bfloat16 = reinterpret_cast<Bfloat16Features*>(s);
          bfloat16->shaderBFloat16Type = bfloat16->shaderBFloat16CooperativeMatrix = fake->bfloat16_feature;
        }
    }
  }
}

void VKAPI_CALL fake_properties(VkPhysicalDevice /*device*/, VkPhysicalDeviceProperties2* properties) {
  properties->properties.apiVersion = VK_API_VERSION_1_3;
  for (auto* s = static_cast<VkBaseOutStructure*>(properties->pNext); s != nullptr; s = s->pNext) {
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES) {
      answer(s, fake->properties);
    } else if (s->sType == type_cooperative_matrix_properties) {
      fake->asked.push_back(s->sType);
      reinterpret_cast<CooperativeMatrixProperties*>(s)->supportedStages = fake->matrix_stages;
    } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) {
      reinterpret_cast<VkPhysicalDeviceVulkan11Properties*>(s)->subgroupSize = 64;
    }
  }
}

VkResult VKAPI_CALL fake_extensions(VkPhysicalDevice /*device*/, const char* /*layer*/, uint32_t* count,
                                    VkExtensionProperties* extensions) {
  for (size_t i = 0; extensions != nullptr && i < fake->extensions.size(); ++i) {
    std::snprintf(extensions[i].extensionName, sizeof extensions[i].extensionName, "%s", fake->extensions[i].c_str());
  }
  *count = static_cast<uint32_t>(fake->extensions.size());
  return VK_SUCCESS;
}

VkResult VKAPI_CALL fake_shapes(VkPhysicalDevice /*device*/, uint32_t* count, CooperativeMatrixShape* shapes) {
  for (size_t i = 0; shapes != nullptr && i < fake->shapes.size(); ++i) {
    EXPECT_EQ(shapes[i].sType, type_cooperative_matrix_shape);
    shapes[i] = fake->shapes[i];
  }
  *count = static_cast<uint32_t>(fake->shapes.size());
  return VK_SUCCESS;
}

PFN_vkVoidFunction VKAPI_CALL fake_function(VkInstance /*instance*/, const char* name) {
  const bool known = std::string(name) == "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
  return known && fake->has_matrix_function ? reinterpret_cast<PFN_vkVoidFunction>(fake_shapes) : nullptr;
}

// While it exists, an entry point is replaced.
template <class Function>
class Replaced {
 public:
  Replaced(Function& entry, Function by) : entry_(entry), saved_(entry) { entry = by; }
  ~Replaced() { entry_ = saved_; }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  Function& entry_;
  Function saved_;
};

class DeviceFeaturesTest : public ::testing::Test {
 protected:
  DeviceFeaturesTest() {
    fake = &driver_;
    driver_.extensions = {cooperative_matrix_extension, bfloat16_extension};
    driver_.v12.vulkanMemoryModel = VK_TRUE;
    driver_.shapes = {shape(16, 16, 16, 0, 0), shape(16, 16, 16, 0, 1), shape(16, 16, 32, 3, 5)};
  }
  ~DeviceFeaturesTest() override { fake = nullptr; }

  static CooperativeMatrixShape shape(uint32_t m, uint32_t n, uint32_t k, uint32_t operand, uint32_t sum) {
    CooperativeMatrixShape s;
    s.m = m, s.n = n, s.k = k;
    s.a_type = s.b_type = operand;
    s.c_type = s.result_type = sum;
    s.scope = 3;
    return s;
  }
  DeviceReport report() { return report_device(VK_NULL_HANDLE, VK_NULL_HANDLE, 0); }

  FakeDriver driver_;

 private:
  Replaced<PFN_vkGetPhysicalDeviceFeatures2> features_{vkGetPhysicalDeviceFeatures2, fake_features};
  Replaced<PFN_vkGetPhysicalDeviceProperties2> properties2_{vkGetPhysicalDeviceProperties2, fake_properties};
  Replaced<PFN_vkGetPhysicalDeviceProperties> properties_{
      vkGetPhysicalDeviceProperties,
      [](VkPhysicalDevice, VkPhysicalDeviceProperties* p) { p->apiVersion = VK_API_VERSION_1_3; }};
  Replaced<PFN_vkGetPhysicalDeviceMemoryProperties> memory_{vkGetPhysicalDeviceMemoryProperties,
                                                            [](VkPhysicalDevice, VkPhysicalDeviceMemoryProperties*) {}};
  Replaced<PFN_vkGetPhysicalDeviceQueueFamilyProperties> queues_{
      vkGetPhysicalDeviceQueueFamilyProperties,
      [](VkPhysicalDevice, uint32_t* count, VkQueueFamilyProperties*) { *count = 0; }};
  Replaced<PFN_vkEnumerateDeviceExtensionProperties> extensions_{vkEnumerateDeviceExtensionProperties, fake_extensions};
  Replaced<PFN_vkGetInstanceProcAddr> function_{vkGetInstanceProcAddr, fake_function};
};

TEST_F(DeviceFeaturesTest, listsTheShapesOfCooperativeMatrices) {
  driver_.shapes.push_back(shape(64, 32, 16, component_bfloat16, 1));
  driver_.shapes.back().scope = 2;
  driver_.shapes.back().saturating = VK_TRUE;
  driver_.shapes.push_back(shape(1, 2, 3, 77, 78));
  driver_.shapes.back().scope = 5;
  const DeviceReport found = report();
  EXPECT_TRUE(found.features.cooperative_matrix);
  EXPECT_TRUE(found.features.bfloat16_matrix);
  ASSERT_EQ(found.matrix_shapes.size(), 5u);
  const MatrixShape& second = found.matrix_shapes[1];
  EXPECT_EQ(second.m, 16u);
  EXPECT_EQ(second.k, 16u);
  EXPECT_EQ(to_string(second.a), "f16");
  EXPECT_EQ(to_string(second.result), "f32");
  EXPECT_EQ(second.scope, MatrixScope::subgroup);
  const MatrixShape& wide = found.matrix_shapes[3];
  EXPECT_EQ(wide.m, 64u);
  EXPECT_EQ(wide.n, 32u);
  EXPECT_EQ(to_string(wide.b), "bf16");
  EXPECT_EQ(to_string(wide.scope), "workgroup");
  EXPECT_TRUE(wide.saturating);
  EXPECT_EQ(to_string(found.matrix_shapes[4].a), "other");
  EXPECT_EQ(to_string(found.matrix_shapes[4].scope), "other");
}

TEST_F(DeviceFeaturesTest, asksNothingAboutExtensionsThatAreNotAnnounced) {
  driver_.extensions = {"VK_KHR_something"};
  const DeviceReport found = report();
  EXPECT_FALSE(found.features.cooperative_matrix);
  EXPECT_FALSE(found.features.bfloat16);
  EXPECT_TRUE(found.matrix_shapes.empty());
  EXPECT_TRUE(driver_.asked.empty());
}

TEST_F(DeviceFeaturesTest, cooperativeMatricesAreUsableInComputeShadersWithAShapeAndTheMemoryModel) {
  const auto usable_with = [this](auto spoil) {
    const FakeDriver good = driver_;
    spoil(driver_);
    const DeviceReport found = report();
    driver_ = good;
    EXPECT_EQ(found.features.cooperative_matrix, !found.matrix_shapes.empty());
    EXPECT_TRUE(found.features.cooperative_matrix || !found.features.bfloat16_matrix);
    return found.features.cooperative_matrix;
  };
  EXPECT_TRUE(usable_with([](FakeDriver&) {}));
  EXPECT_FALSE(usable_with([](FakeDriver& d) { d.matrix_feature = VK_FALSE; }));
  EXPECT_FALSE(usable_with([](FakeDriver& d) { d.matrix_stages = VK_SHADER_STAGE_FRAGMENT_BIT; }));
  EXPECT_FALSE(usable_with([](FakeDriver& d) { d.v12.vulkanMemoryModel = VK_FALSE; }));
  EXPECT_FALSE(usable_with([](FakeDriver& d) { d.shapes.clear(); }));
  EXPECT_FALSE(usable_with([](FakeDriver& d) { d.has_matrix_function = false; }));
}

TEST_F(DeviceFeaturesTest, reportsHalvesStorageAndIntegerDotProducts) {
  const DeviceFeatures none = report().features;
  EXPECT_FALSE(none.shader_float16 || none.storage_16bit || none.integer_dot_product || none.packed_dot_s8);
  driver_.v12.shaderFloat16 = driver_.v11.storageBuffer16BitAccess = driver_.v13.shaderIntegerDotProduct = VK_TRUE;
  driver_.properties.integerDotProduct4x8BitPackedSignedAccelerated = VK_TRUE;
  const DeviceFeatures some = report().features;
  EXPECT_TRUE(some.shader_float16 && some.storage_16bit && some.integer_dot_product && some.packed_dot_s8);
  EXPECT_FALSE(some.packed_dot_u8 || some.packed_dot_mixed);
}

TEST_F(DeviceFeaturesTest, pinsSubgroupsWhereComputeShadersMayAskForTheirSize) {
  driver_.properties.minSubgroupSize = 32;
  driver_.properties.maxSubgroupSize = 64;
  driver_.properties.maxComputeWorkgroupSubgroups = 16;
  EXPECT_EQ(report().limits.pinned_subgroup, 0u);
  driver_.v13.subgroupSizeControl = VK_TRUE;
  EXPECT_EQ(report().limits.pinned_subgroup, 0u) << "not in compute shaders";
  driver_.properties.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
  EXPECT_EQ(report().limits.pinned_subgroup, 32u);
  EXPECT_EQ(report().limits.max_subgroups, 16u);
  driver_.properties.minSubgroupSize = 64;
  EXPECT_EQ(report().limits.pinned_subgroup, 64u) << "the usual size, where 32 is not offered";
}

TEST_F(DeviceFeaturesTest, switchesOnExactlyWhatIsThere) {
  DeviceFeatures features = report().features;
  FeatureChain all(features.pipeline_statistics, features.cooperative_matrix, features.bfloat16);
  request(features, all);
  EXPECT_EQ(all.v12.vulkanMemoryModel, VK_TRUE);
  EXPECT_EQ(all.matrix.cooperativeMatrix, VK_TRUE);
  EXPECT_EQ(all.bfloat16.shaderBFloat16CooperativeMatrix, VK_TRUE);
  EXPECT_EQ(all.v13.synchronization2, VK_TRUE);
  EXPECT_EQ(all.v13.pNext, &all.matrix);
  EXPECT_EQ(all.matrix.pNext, &all.bfloat16);
  EXPECT_EQ(extensions_of(features).size(), 2u);

  features.cooperative_matrix = features.bfloat16 = features.bfloat16_matrix = false;
  FeatureChain less(false, false, false);
  request(features, less);
  EXPECT_EQ(less.v13.pNext, nullptr);
  EXPECT_TRUE(extensions_of(features).empty());
}

}  // namespace
}  // namespace canopy::vk
