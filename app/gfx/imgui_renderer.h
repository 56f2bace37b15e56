#pragma once

#include <imgui.h>

#include "app/gfx/ui_device.h"

namespace canopy::app {

/// Dear ImGui's Vulkan backend in the current context, drawing into images of one format by dynamic rendering.
class ImguiRenderer {
 public:
  /// image_count = frames that may be in flight, at least 2.
  ImguiRenderer(const UiDevice& device, VkFormat format, uint32_t image_count);
  ~ImguiRenderer();
  ImguiRenderer(const ImguiRenderer&) = delete;
  ImguiRenderer& operator=(const ImguiRenderer&) = delete;

  void new_frame();

  /// Records: clear to the colour, draw. The image must be in COLOR_ATTACHMENT_OPTIMAL and stays there.
  void record(VkCommandBuffer commands, VkImageView view, VkExtent2D extent, ImDrawData* data, ImU32 clear);

 private:
  const UiDevice& device_;
};

/// A whole-image layout change with the widest dependencies; a frame has two of them, so precision buys nothing.
void transition(const VulkanApi& vk, VkCommandBuffer commands, VkImage image, VkImageLayout from, VkImageLayout to);

}  // namespace canopy::app
