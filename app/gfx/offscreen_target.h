#pragma once

#include <memory>

#include "app/gfx/imgui_renderer.h"
#include "app/gfx/readback.h"
#include "app/gfx/ui_device.h"
#include "app/picture/image.h"

namespace canopy::app {

/// An image into which the window is drawn where there is no display.
class OffscreenTarget {
 public:
  static constexpr VkFormat kFormat = VK_FORMAT_R8G8B8A8_UNORM;

  /// Needs a current ImGui context and draws that one.
  OffscreenTarget(const UiDevice& device, VkExtent2D extent);
  ~OffscreenTarget();
  OffscreenTarget(const OffscreenTarget&) = delete;
  OffscreenTarget& operator=(const OffscreenTarget&) = delete;

  VkExtent2D extent() const { return extent_; }
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

}  // namespace canopy::app
