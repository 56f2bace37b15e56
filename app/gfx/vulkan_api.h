#pragma once
// The Vulkan functions that the window uses, loaded at run time, so that the program starts without a Vulkan loader and
// can say that it is missing. The engine has its own table and its own device.

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

namespace canopy::app {

#define CANOPY_UI_VK_GLOBAL(X) \
  X(CreateInstance) X(EnumerateInstanceLayerProperties) X(EnumerateInstanceExtensionProperties)

// The formatter does not settle on a layout for these.
// clang-format off
#define CANOPY_UI_VK_INSTANCE(X) \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceFeatures2) \
  X(GetPhysicalDeviceQueueFamilyProperties) X(GetPhysicalDeviceMemoryProperties) X(CreateDevice) X(DestroyDevice) \
  X(EnumerateDeviceExtensionProperties) X(GetDeviceQueue) X(DeviceWaitIdle) X(QueueSubmit) \
  X(QueueWaitIdle) X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) \
  X(FreeCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) X(ResetCommandBuffer) \
  X(CreateFence) X(DestroyFence) X(WaitForFences) X(ResetFences) \
  X(CreateSemaphore) X(DestroySemaphore) X(CreateImage) X(DestroyImage) \
  X(GetImageMemoryRequirements) X(AllocateMemory) X(FreeMemory) X(BindImageMemory) \
  X(CreateImageView) X(DestroyImageView) X(CreateBuffer) X(DestroyBuffer) \
  X(GetBufferMemoryRequirements) X(BindBufferMemory) X(MapMemory) X(UnmapMemory) \
  X(CmdPipelineBarrier) X(CmdBeginRendering) X(CmdEndRendering) X(CmdCopyImageToBuffer)

// Null where the instance was made without their extension.
#define CANOPY_UI_VK_OPTIONAL(X) \
  X(DestroySurfaceKHR) X(GetPhysicalDeviceSurfaceSupportKHR) X(GetPhysicalDeviceSurfaceCapabilitiesKHR) \
  X(GetPhysicalDeviceSurfaceFormatsKHR) X(CreateSwapchainKHR) X(DestroySwapchainKHR) \
  X(GetSwapchainImagesKHR) X(AcquireNextImageKHR) X(QueuePresentKHR) \
  X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT)
// clang-format on

struct VulkanApi {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define CANOPY_UI_VK_MEMBER(name) PFN_vk##name name = nullptr;
  CANOPY_UI_VK_GLOBAL(CANOPY_UI_VK_MEMBER)
  CANOPY_UI_VK_INSTANCE(CANOPY_UI_VK_MEMBER)
  CANOPY_UI_VK_OPTIONAL(CANOPY_UI_VK_MEMBER)
#undef CANOPY_UI_VK_MEMBER

  /// Opens the loader and gets the functions that need no instance. Throws Error (unavailable) when there is no loader.
  void load_global();
  /// Gets the functions of an instance. Throws Error (unavailable) naming a missing function of Vulkan 1.3.
  void load_instance(VkInstance instance);
};

/// A Vulkan structure with its type set and everything else zero.
template <class T>
T vk_struct(VkStructureType type) {
  T s{};
  s.sType = type;
  return s;
}

/// Throws an Error with "<doing> failed: ..." if result is an error: out_of_memory, device_lost or else unavailable.
void check(VkResult result, const char* doing);

}  // namespace canopy::app
