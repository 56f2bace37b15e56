#pragma once

#include "app/gfx/image.h"
#include "app/gfx/ui_device.h"

namespace canopy::app {

/// Host memory that an 8-bit four-channel image is copied into.
class Readback {
 public:
  Readback(const UiDevice& device, VkExtent2D extent);
  ~Readback();
  Readback(const Readback&) = delete;
  Readback& operator=(const Readback&) = delete;

  /// Records the copy of an image in TRANSFER_SRC_OPTIMAL.
  void record(VkCommandBuffer commands, VkImage image);
  /// The copied picture, after the commands have run. bgra: swap the channels of such an image. Alpha becomes opaque.
  Image take(bool bgra) const;

 private:
  const UiDevice& device_;
  VkExtent2D extent_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

}  // namespace canopy::app
