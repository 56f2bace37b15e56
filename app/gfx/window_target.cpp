#include "app/gfx/window_target.h"

#include <algorithm>
#include <cstdint>

#include "app/gfx/readback.h"
#include "engine/base/error.h"

namespace canopy::app {

WindowTarget::WindowTarget(const UiDevice& device, VkExtent2D extent) : device_(device), extent_(extent) {
  try {
    choose_format();
    create_frames();
    renderer_ = std::make_unique<ImguiRenderer>(device, format_.format, kFrames);
  } catch (...) {
    destroy();
    throw;
  }
}

WindowTarget::~WindowTarget() {
  destroy();
}

void WindowTarget::destroy() {
  const VulkanApi& vk = device_.api();
  vk.DeviceWaitIdle(device_.handle());
  renderer_.reset();
  destroy_targets();
  vk.DestroySwapchainKHR(device_.handle(), swapchain_, nullptr);
  for (Frame& frame : frames_) {
    if (frame.commands) vk.FreeCommandBuffers(device_.handle(), device_.command_pool(), 1, &frame.commands);
    vk.DestroyFence(device_.handle(), frame.done, nullptr);
    vk.DestroySemaphore(device_.handle(), frame.acquired, nullptr);
  }
}

void WindowTarget::choose_format() {
  const VulkanApi& vk = device_.api();
  uint32_t count = 0;
  check(vk.GetPhysicalDeviceSurfaceFormatsKHR(device_.physical(), device_.surface(), &count, nullptr),
        "Listing surface formats");
  std::vector<VkSurfaceFormatKHR> formats(count);
  check(vk.GetPhysicalDeviceSurfaceFormatsKHR(device_.physical(), device_.surface(), &count, formats.data()),
        "Listing surface formats");
  for (VkFormat wanted : {VK_FORMAT_B8G8R8A8_UNORM, VK_FORMAT_R8G8B8A8_UNORM}) {
    for (const VkSurfaceFormatKHR& format : formats) {
      if (format.format != wanted || format.colorSpace != VK_COLOR_SPACE_SRGB_NONLINEAR_KHR) continue;
      format_ = format;
      return;
    }
  }
  throw Error(ErrorKind::unavailable,
              "The display offers " + std::to_string(count) +
                  " surface formats, none of them 8-bit UNORM, which the window's colours need.");
}

void WindowTarget::create_frames() {
  const VulkanApi& vk = device_.api();
  for (Frame& frame : frames_) {
    auto allocation = vk_struct<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    allocation.commandPool = device_.command_pool();
    allocation.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocation.commandBufferCount = 1;
    check(vk.AllocateCommandBuffers(device_.handle(), &allocation, &frame.commands), "Allocating a command buffer");
    auto fence = vk_struct<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    fence.flags = VK_FENCE_CREATE_SIGNALED_BIT;
    check(vk.CreateFence(device_.handle(), &fence, nullptr, &frame.done), "Creating a fence");
    auto semaphore = vk_struct<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
    check(vk.CreateSemaphore(device_.handle(), &semaphore, nullptr, &frame.acquired), "Creating a semaphore");
  }
}

void WindowTarget::destroy_targets() {
  const VulkanApi& vk = device_.api();
  for (Target& target : targets_) {
    vk.DestroyImageView(device_.handle(), target.view, nullptr);
    vk.DestroySemaphore(device_.handle(), target.drawn, nullptr);
  }
  targets_.clear();
}

void WindowTarget::resize(VkExtent2D extent) {
  if (extent.width == extent_.width && extent.height == extent_.height) return;
  extent_ = extent;
  stale_ = true;
}

void WindowTarget::create_swapchain() {
  const VulkanApi& vk = device_.api();
  vk.DeviceWaitIdle(device_.handle());
  destroy_targets();
  VkSurfaceCapabilitiesKHR caps;
  check(vk.GetPhysicalDeviceSurfaceCapabilitiesKHR(device_.physical(), device_.surface(), &caps), "Asking the display");
  if (caps.currentExtent.width != UINT32_MAX) extent_ = caps.currentExtent;
  can_capture_ = (caps.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_SRC_BIT) != 0;
  auto info = vk_struct<VkSwapchainCreateInfoKHR>(VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR);
  info.surface = device_.surface();
  info.minImageCount = std::max(caps.minImageCount, 2u);
  if (caps.maxImageCount) info.minImageCount = std::min(info.minImageCount, caps.maxImageCount);
  info.imageFormat = format_.format;
  info.imageColorSpace = format_.colorSpace;
  info.imageExtent = extent_;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
  if (can_capture_) info.imageUsage |= VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  info.preTransform = caps.currentTransform;
  info.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
  info.presentMode = VK_PRESENT_MODE_FIFO_KHR;  // the only mode that every device has; without tearing
  info.clipped = VK_FALSE;                      // captures need every pixel
  info.oldSwapchain = swapchain_;
  VkSwapchainKHR created = VK_NULL_HANDLE;
  check(vk.CreateSwapchainKHR(device_.handle(), &info, nullptr, &created), "Creating the swapchain");
  vk.DestroySwapchainKHR(device_.handle(), swapchain_, nullptr);
  swapchain_ = created;
  uint32_t count = 0;
  check(vk.GetSwapchainImagesKHR(device_.handle(), swapchain_, &count, nullptr), "Listing swapchain images");
  std::vector<VkImage> images(count);
  check(vk.GetSwapchainImagesKHR(device_.handle(), swapchain_, &count, images.data()), "Listing swapchain images");
  for (VkImage image : images) {
    Target& target = targets_.emplace_back();
    target.image = image;
    auto view = vk_struct<VkImageViewCreateInfo>(VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO);
    view.image = image;
    view.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view.format = format_.format;
    view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    check(vk.CreateImageView(device_.handle(), &view, nullptr, &target.view), "Creating a view");
    auto semaphore = vk_struct<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
    check(vk.CreateSemaphore(device_.handle(), &semaphore, nullptr, &target.drawn), "Creating a semaphore");
  }
  stale_ = false;
}

void WindowTarget::record(const Frame& frame, const Target& target, ImDrawData* data, ImU32 clear, Readback* readback) {
  const VulkanApi& vk = device_.api();
  auto begin = vk_struct<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vk.BeginCommandBuffer(frame.commands, &begin), "Recording a frame");
  transition(vk, frame.commands, target.image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL);
  renderer_->record(frame.commands, target.view, extent_, data, clear);
  VkImageLayout layout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  if (readback) {
    transition(vk, frame.commands, target.image, layout, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    layout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    readback->record(frame.commands, target.image);
  }
  transition(vk, frame.commands, target.image, layout, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
  check(vk.EndCommandBuffer(frame.commands), "Recording a frame");
}

bool WindowTarget::render(ImDrawData* data, ImU32 clear, std::optional<Image>* capture) {
  const VulkanApi& vk = device_.api();
  if (stale_) create_swapchain();
  const Frame& frame = frames_[next_];
  check(vk.WaitForFences(device_.handle(), 1, &frame.done, VK_TRUE, UINT64_MAX), "Waiting for a frame");
  uint32_t index = 0;
  const VkResult acquired =
      vk.AcquireNextImageKHR(device_.handle(), swapchain_, UINT64_MAX, frame.acquired, VK_NULL_HANDLE, &index);
  if (acquired == VK_ERROR_OUT_OF_DATE_KHR) {
    stale_ = true;
    return false;
  }
  check(acquired, "Taking a swapchain image");
  check(vk.ResetFences(device_.handle(), 1, &frame.done), "Resetting a fence");
  const Target& target = targets_[index];
  std::unique_ptr<Readback> readback;
  if (capture && can_capture_) readback = std::make_unique<Readback>(device_, extent_);
  record(frame, target, data, clear, readback.get());
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  auto submit = vk_struct<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.waitSemaphoreCount = submit.commandBufferCount = submit.signalSemaphoreCount = 1;
  submit.pWaitSemaphores = &frame.acquired;
  submit.pWaitDstStageMask = &stage;
  submit.pCommandBuffers = &frame.commands;
  submit.pSignalSemaphores = &target.drawn;
  check(vk.QueueSubmit(device_.queue(), 1, &submit, frame.done), "Drawing a frame");
  next_ = (next_ + 1) % kFrames;
  if (readback) {
    check(vk.WaitForFences(device_.handle(), 1, &frame.done, VK_TRUE, UINT64_MAX), "Waiting for a frame");
    *capture = readback->take(format_.format == VK_FORMAT_B8G8R8A8_UNORM);
  }
  if (acquired == VK_SUBOPTIMAL_KHR) stale_ = true;
  return present(target, index);
}

bool WindowTarget::present(const Target& target, uint32_t index) {
  auto info = vk_struct<VkPresentInfoKHR>(VK_STRUCTURE_TYPE_PRESENT_INFO_KHR);
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &target.drawn;
  info.swapchainCount = 1;
  info.pSwapchains = &swapchain_;
  info.pImageIndices = &index;
  const VkResult result = device_.api().QueuePresentKHR(device_.queue(), &info);
  if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_SUBOPTIMAL_KHR) {
    stale_ = true;
    return result == VK_SUBOPTIMAL_KHR;
  }
  check(result, "Presenting a frame");
  return true;
}

void WindowTarget::wait() {
  device_.api().QueueWaitIdle(device_.queue());
}

}  // namespace canopy::app
