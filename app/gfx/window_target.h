#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/gfx/imgui_renderer.h"
#include "app/gfx/ui_device.h"
#include "app/picture/image.h"

namespace canopy::app {

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
