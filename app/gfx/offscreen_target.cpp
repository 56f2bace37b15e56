#include "app/gfx/offscreen_target.h"

#include <cstdint>

namespace canopy::app {

OffscreenTarget::OffscreenTarget(const UiDevice& device, VkExtent2D extent) : device_(device), extent_(extent) {
  const VulkanApi& vk = device.api();
  try {
    create_image();
    auto fence = vk_struct<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    check(vk.CreateFence(device.handle(), &fence, nullptr, &fence_), "Creating a fence");
    auto allocation = vk_struct<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    allocation.commandPool = device.command_pool();
    allocation.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocation.commandBufferCount = 1;
    check(vk.AllocateCommandBuffers(device.handle(), &allocation, &commands_), "Allocating a command buffer");
    readback_ = std::make_unique<Readback>(device, extent);
    renderer_ = std::make_unique<ImguiRenderer>(device, kFormat, 2);
  } catch (...) {
    destroy();
    throw;
  }
}

OffscreenTarget::~OffscreenTarget() {
  destroy();
}

void OffscreenTarget::destroy() {
  const VulkanApi& vk = device_.api();
  vk.DeviceWaitIdle(device_.handle());
  renderer_.reset();
  readback_.reset();
  if (commands_) vk.FreeCommandBuffers(device_.handle(), device_.command_pool(), 1, &commands_);
  vk.DestroyFence(device_.handle(), fence_, nullptr);
  vk.DestroyImageView(device_.handle(), view_, nullptr);
  vk.DestroyImage(device_.handle(), image_, nullptr);
  vk.FreeMemory(device_.handle(), memory_, nullptr);
}

void OffscreenTarget::create_image() {
  const VulkanApi& vk = device_.api();
  auto info = vk_struct<VkImageCreateInfo>(VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO);
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = kFormat;
  info.extent = {extent_.width, extent_.height, 1};
  info.mipLevels = info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  check(vk.CreateImage(device_.handle(), &info, nullptr, &image_), "Creating the picture");
  VkMemoryRequirements needs;
  vk.GetImageMemoryRequirements(device_.handle(), image_, &needs);
  auto allocation = vk_struct<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = device_.memory_type(needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  check(vk.AllocateMemory(device_.handle(), &allocation, nullptr, &memory_), "Allocating the picture");
  check(vk.BindImageMemory(device_.handle(), image_, memory_, 0), "Binding the picture");
  auto view = vk_struct<VkImageViewCreateInfo>(VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO);
  view.image = image_;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = kFormat;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  check(vk.CreateImageView(device_.handle(), &view, nullptr, &view_), "Creating the picture's view");
}

Image OffscreenTarget::render(ImDrawData* data, ImU32 clear) {
  const VulkanApi& vk = device_.api();
  auto begin = vk_struct<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vk.BeginCommandBuffer(commands_, &begin), "Recording a frame");
  transition(vk, commands_, image_, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL);
  renderer_->record(commands_, view_, extent_, data, clear);
  transition(vk, commands_, image_, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  readback_->record(commands_, image_);
  check(vk.EndCommandBuffer(commands_), "Recording a frame");
  auto submit = vk_struct<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  check(vk.QueueSubmit(device_.queue(), 1, &submit, fence_), "Drawing a frame");
  check(vk.WaitForFences(device_.handle(), 1, &fence_, VK_TRUE, UINT64_MAX), "Waiting for a frame");
  check(vk.ResetFences(device_.handle(), 1, &fence_), "Resetting a fence");
  return readback_->take(false);
}

}  // namespace canopy::app
