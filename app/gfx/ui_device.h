#pragma once
// The Vulkan instance and device that draw the window. They are not the engine's: drawing never waits in code for a
// model's work, and losing one of the two devices does not affect the other.

#include <functional>
#include <string>
#include <vector>

#include "app/gfx/vulkan_api.h"

namespace canopy::app {

class UiDevice {
 public:
  struct Options {
    std::vector<const char*> instance_extensions;  // those of the window system; none off-screen
    bool validation = false;                       // use the Khronos validation layer, if installed
    /// Makes the surface of the window, so that a device can be chosen that presents to it. Empty when off-screen.
    std::function<VkSurfaceKHR(VkInstance)> make_surface;
  };

  explicit UiDevice(const Options& options);
  ~UiDevice();
  UiDevice(const UiDevice&) = delete;
  UiDevice& operator=(const UiDevice&) = delete;

  const VulkanApi& api() const { return api_; }
  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical() const { return physical_; }
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return queue_family_; }
  VkCommandPool command_pool() const { return pool_; }
  VkSurfaceKHR surface() const { return surface_; }

  const std::string& name() const { return name_; }
  /// Whether the device computes on the processor: then drawing takes time away from the engine.
  bool is_software() const { return software_; }

  /// Index of a memory type that is allowed by `bits` and has all of `flags`. Throws Error (unavailable) when there is
  /// none.
  uint32_t memory_type(uint32_t bits, VkMemoryPropertyFlags flags) const;

  bool validation_active() const { return messenger_ != VK_NULL_HANDLE; }
  /// Warnings and errors of the validation layer so far.
  const std::vector<std::string>& validation_messages() const { return validation_messages_; }

 private:
  void create_instance(const Options& options);
  void choose_physical_device();
  bool suits(VkPhysicalDevice candidate, uint32_t& family) const;
  void create_device();
  void destroy();

  VulkanApi api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t queue_family_ = 0;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkPhysicalDeviceMemoryProperties memory_{};
  std::string name_;
  bool software_ = false;
  std::vector<std::string> validation_messages_;
};

}  // namespace canopy::app
