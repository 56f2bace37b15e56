#pragma once

#include "app/gfx/ui_device.h"
#include "app/picture/image.h"

namespace canopy::app {

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

}  // namespace canopy::app
