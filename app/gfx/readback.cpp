#include "app/gfx/readback.h"

#include <cstring>
#include <utility>

namespace canopy::app {

Readback::Readback(const UiDevice& device, VkExtent2D extent) : device_(device), extent_(extent) {
  const VulkanApi& vk = device.api();
  auto info = vk_struct<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = VkDeviceSize{4} * extent.width * extent.height;
  info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  check(vk.CreateBuffer(device.handle(), &info, nullptr, &buffer_), "Creating the read-back buffer");
  VkMemoryRequirements needs;
  vk.GetBufferMemoryRequirements(device.handle(), buffer_, &needs);
  auto allocation = vk_struct<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = device.memory_type(
      needs.memoryTypeBits, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  check(vk.AllocateMemory(device.handle(), &allocation, nullptr, &memory_), "Allocating the read-back buffer");
  check(vk.BindBufferMemory(device.handle(), buffer_, memory_, 0), "Binding the read-back buffer");
}

Readback::~Readback() {
  device_.api().DestroyBuffer(device_.handle(), buffer_, nullptr);
  device_.api().FreeMemory(device_.handle(), memory_, nullptr);
}

void Readback::record(VkCommandBuffer commands, VkImage image) {
  VkBufferImageCopy region{};
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.imageExtent = {extent_.width, extent_.height, 1};
  const VulkanApi& vk = device_.api();
  vk.CmdCopyImageToBuffer(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, buffer_, 1, &region);
  auto barrier = vk_struct<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                        nullptr, 0, nullptr);
}

Image Readback::take(bool bgra) const {
  const VulkanApi& vk = device_.api();
  Image image{extent_.width, extent_.height, {}};
  image.pixels.resize(size_t{4} * extent_.width * extent_.height);
  void* mapped = nullptr;
  check(vk.MapMemory(device_.handle(), memory_, 0, VK_WHOLE_SIZE, 0, &mapped), "Mapping the read-back buffer");
  std::memcpy(image.pixels.data(), mapped, image.pixels.size());
  vk.UnmapMemory(device_.handle(), memory_);
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    if (bgra) std::swap(image.pixels[i], image.pixels[i + 2]);
    image.pixels[i + 3] = 255;
  }
  return image;
}

}  // namespace canopy::app
