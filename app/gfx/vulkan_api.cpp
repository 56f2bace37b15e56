#include "app/gfx/vulkan_api.h"

#include <dlfcn.h>

#include <string>

#include "engine/base/error.h"

namespace canopy::app {

void VulkanApi::load_global() {
  // Never closed: drivers may crash when they are unloaded.
  static void* const loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!loader)
    throw Error(ErrorKind::unavailable,
                "The window needs Vulkan, and libvulkan.so.1 could not be opened; install the "
                "Vulkan loader (Debian: libvulkan1) and a driver (mesa-vulkan-drivers).");
  GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  if (!GetInstanceProcAddr) throw Error(ErrorKind::unavailable, "libvulkan.so.1 has no vkGetInstanceProcAddr.");
#define CANOPY_UI_VK_LOAD(name) name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(nullptr, "vk" #name));
  CANOPY_UI_VK_GLOBAL(CANOPY_UI_VK_LOAD)
#undef CANOPY_UI_VK_LOAD
}

void VulkanApi::load_instance(VkInstance instance) {
#define CANOPY_UI_VK_LOAD(name) name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name));
  CANOPY_UI_VK_OPTIONAL(CANOPY_UI_VK_LOAD)
#undef CANOPY_UI_VK_LOAD
#define CANOPY_UI_VK_LOAD(name)                                                     \
  name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name)); \
  if (!(name))                                                                      \
    throw Error(ErrorKind::unavailable, "The Vulkan loader has no vk" #name         \
                                        "; the window needs Vulkan "                \
                                        "1.3.");
  CANOPY_UI_VK_INSTANCE(CANOPY_UI_VK_LOAD)
#undef CANOPY_UI_VK_LOAD
}

void check(VkResult result, const char* doing) {
  if (result >= 0) return;
  const std::string message =
      std::string(doing) + " failed in the window's graphics device: VkResult " + std::to_string(result) + ".";
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: throw Error(ErrorKind::out_of_memory, message);
    case VK_ERROR_DEVICE_LOST: throw Error(ErrorKind::device_lost, message);
    default: throw Error(ErrorKind::unavailable, message);
  }
}

}  // namespace canopy::app
