#pragma once

#include <imgui.h>

#include "app/gfx/ui_device.h"

namespace canopy::app {

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

}  // namespace canopy::app
