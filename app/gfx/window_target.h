#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/gfx/image.h"
#include "app/gfx/imgui_renderer.h"
#include "app/gfx/ui_device.h"

namespace canopy::app {

class Readback;

/// The swapchain of a window. UNORM, so that the theme's colours arrive as they are written.
class WindowTarget {
 public:
  /// device must have been made with a surface; a current ImGui context is rendered from now on.
  WindowTarget(const UiDevice& device, VkExtent2D extent);
  ~WindowTarget();
  WindowTarget(const WindowTarget&) = delete;
  WindowTarget& operator=(const WindowTarget&) = delete;

  void new_frame() { renderer_->new_frame(); }
  /// The framebuffer's size changed; the next frame rebuilds the swapchain.
  void resize(VkExtent2D extent);
  /// Draws and presents. False when nothing was shown because the swapchain was out of date: draw again.
  /// capture, when given, receives the picture that is presented.
  bool render(ImDrawData* data, ImU32 clear, std::optional<Image>* capture = nullptr);
  /// Waits until the device has drawn everything, to know what a frame costs on a software device.
  void wait();

 private:
  static constexpr uint32_t kFrames = 2;  // recorded ahead of the device
  struct Frame {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence done = VK_NULL_HANDLE;
    VkSemaphore acquired = VK_NULL_HANDLE;
  };
  struct Target {
    VkImage image = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
    VkSemaphore drawn = VK_NULL_HANDLE;  // one per image: presentation may still wait on another's
  };

  void choose_format();
  void create_frames();
  void create_swapchain();
  void destroy_targets();
  void destroy();
  void record(const Frame& frame, const Target& target, ImDrawData* data, ImU32 clear, Readback* readback);
  bool present(const Target& target, uint32_t index);

  const UiDevice& device_;
  VkExtent2D extent_;
  VkSurfaceFormatKHR format_{};
  bool can_capture_ = false;
  bool stale_ = true;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  std::vector<Target> targets_;
  Frame frames_[kFrames];
  uint32_t next_ = 0;
  std::unique_ptr<ImguiRenderer> renderer_;
};

}  // namespace canopy::app
