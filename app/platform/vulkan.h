#pragma once
// Vulkan for the window: its functions, a device of the window's own, Dear ImGui's renderer, and what is drawn on, a
// swapchain or an image.

#include <imgui.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/platform/image.h"

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

namespace canopy::app {

// The Vulkan functions that the window uses, loaded at run time, so that the program starts without a Vulkan loader and
// can say that it is missing. The engine has its own table and its own device.

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
  X(CmdPipelineBarrier) X(CmdBeginRendering) X(CmdEndRendering) X(CmdClearAttachments) X(CmdCopyImageToBuffer)

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

// The Vulkan instance and device that draw the window. They are not the engine's: drawing never waits in code for a
// model's work, and losing one of the two devices does not affect the other.

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

/// Draws the current Dear ImGui context with its Vulkan backend, into images of one format by dynamic rendering.
class ImguiRenderer {
 public:
  /// image_count: frames that may be in flight, at least 2.
  ImguiRenderer(const UiDevice& device, VkFormat format, uint32_t image_count);
  ~ImguiRenderer();
  ImguiRenderer(const ImguiRenderer&) = delete;
  ImguiRenderer& operator=(const ImguiRenderer&) = delete;

  void new_frame();

  /// Records a clear to the colour and the drawing. The image must be in COLOR_ATTACHMENT_OPTIMAL and stays in it.
  void record(VkCommandBuffer commands, VkImageView view, VkExtent2D extent, ImDrawData* data, ImU32 clear);

 private:
  const UiDevice& device_;
};

/// Changes the layout of a whole image. Waits for all earlier work, which is simple and cheap enough for two changes in
/// a frame.
void transition(const VulkanApi& vk, VkCommandBuffer commands, VkImage image, VkImageLayout from, VkImageLayout to);

/// Host memory to copy an 8-bit image with four channels into.
class Readback {
 public:
  Readback(const UiDevice& device, VkExtent2D extent);
  ~Readback();
  Readback(const Readback&) = delete;
  Readback& operator=(const Readback&) = delete;

  /// Records the copy of an image, which must be in TRANSFER_SRC_OPTIMAL.
  void record(VkCommandBuffer commands, VkImage image);
  /// The copied picture; call after the commands have run. bgra: the image has red and blue swapped. The result is
  /// opaque.
  Image take(bool bgra) const;

 private:
  const UiDevice& device_;
  VkExtent2D extent_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

/// An image into which the window is drawn where there is no display.
class OffscreenTarget {
 public:
  static constexpr VkFormat kFormat = VK_FORMAT_R8G8B8A8_UNORM;

  /// Needs a current ImGui context and draws that one.
  OffscreenTarget(const UiDevice& device, VkExtent2D extent);
  ~OffscreenTarget();
  OffscreenTarget(const OffscreenTarget&) = delete;
  OffscreenTarget& operator=(const OffscreenTarget&) = delete;

  void new_frame() { renderer_->new_frame(); }
  /// Draws, waits, and returns the picture.
  Image render(ImDrawData* data, ImU32 clear);

 private:
  void create_image();
  void destroy();

  const UiDevice& device_;
  VkExtent2D extent_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::unique_ptr<Readback> readback_;
  std::unique_ptr<ImguiRenderer> renderer_;
};

class Readback;

/// The swapchain of a window. Its format is UNORM, so that the colours of the theme are shown as they are.
class WindowTarget {
 public:
  /// device must have been made with a surface. Needs a current ImGui context and draws that one.
  WindowTarget(const UiDevice& device, VkExtent2D extent);
  ~WindowTarget();
  WindowTarget(const WindowTarget&) = delete;
  WindowTarget& operator=(const WindowTarget&) = delete;

  void new_frame() { renderer_->new_frame(); }
  /// Call when the size of the framebuffer has changed; the next frame makes a new swapchain.
  void resize(VkExtent2D extent);
  /// Draws and presents. Returns false when the swapchain was out of date and nothing was shown: draw again. `capture`,
  /// if given, receives the presented picture.
  bool render(ImDrawData* data, ImU32 clear, std::optional<Image>* capture = nullptr);
  /// Whether the next frame makes a new swapchain, as the shown picture does not fit the window (any more).
  bool stale() const { return stale_; }
  /// Frames presented so far.
  uint64_t presented() const { return presented_; }
  /// Has each frame say its number, presented() once it is shown, in its upper left corner: 32 cells of 4 x 4 pixels,
  /// white for 1: 1 0 1 0, the number's lowest 24 bits from the lowest on, and the exclusive or of its six groups of
  /// four bits, from the lowest on. tools/stress_window reads it from pictures of the screen.
  void mark_frames() { marks_ = true; }
  /// Waits until the device has drawn everything, so that the cost of a frame on a software device can be measured.
  void wait();

 private:
  static constexpr uint32_t kFrames = 2;  // in flight at a time
  struct Frame {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence done = VK_NULL_HANDLE;
    VkSemaphore acquired = VK_NULL_HANDLE;
  };
  struct Target {
    VkImage image = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    // One for each image: the presentation of another image may still wait for its own.
    VkSemaphore drawn = VK_NULL_HANDLE;
  };

  void choose_format();
  void create_frames();
  void create_swapchain();
  void destroy_targets();
  void destroy();
  void record(const Frame& frame, const Target& target, ImDrawData* data, ImU32 clear, Readback* readback);
  void record_mark(const Frame& frame, const Target& target);
  bool present(const Target& target, uint32_t index);

  const UiDevice& device_;
  VkExtent2D extent_;
  VkSurfaceFormatKHR format_{};
  bool can_capture_ = false;
  bool stale_ = true;
  bool marks_ = false;
  uint64_t presented_ = 0;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  std::vector<Target> targets_;
  Frame frames_[kFrames];
  uint32_t next_ = 0;
  std::unique_ptr<ImguiRenderer> renderer_;
};

}  // namespace canopy::app
