#include "app/gfx/imgui_renderer.h"

#include <imgui_impl_vulkan.h>

#include "engine/base/error.h"

namespace canopy::app {
namespace {

PFN_vkVoidFunction load(const char* name, void* user) {
  const auto* device = static_cast<const UiDevice*>(user);
  return device->api().GetInstanceProcAddr(device->instance(), name);
}

void check_backend(VkResult result) {
  check(result, "Drawing the window");
}

}  // namespace

ImguiRenderer::ImguiRenderer(const UiDevice& device, VkFormat format, uint32_t image_count) : device_(device) {
  if (!ImGui_ImplVulkan_LoadFunctions(VK_API_VERSION_1_3, load, const_cast<UiDevice*>(&device)))
    throw Error(ErrorKind::unavailable,
                "The Vulkan driver of " + device.name() + " lacks functions that drawing needs.");
  ImGui_ImplVulkan_InitInfo info{};
  info.ApiVersion = VK_API_VERSION_1_3;
  info.Instance = device.instance();
  info.PhysicalDevice = device.physical();
  info.Device = device.handle();
  info.QueueFamily = device.queue_family();
  info.Queue = device.queue();
  info.DescriptorPoolSize = 64;
  info.MinImageCount = 2;
  info.ImageCount = image_count;
  info.UseDynamicRendering = true;
  info.CheckVkResultFn = check_backend;
  auto& rendering = info.PipelineInfoMain.PipelineRenderingCreateInfo;
  rendering.sType = VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO;
  rendering.colorAttachmentCount = 1;
  rendering.pColorAttachmentFormats = &format;
  ImGui_ImplVulkan_Init(&info);
}

ImguiRenderer::~ImguiRenderer() {
  device_.api().DeviceWaitIdle(device_.handle());
  ImGui_ImplVulkan_Shutdown();
}

void ImguiRenderer::new_frame() {
  ImGui_ImplVulkan_NewFrame();
}

void ImguiRenderer::record(VkCommandBuffer commands, VkImageView view, VkExtent2D extent, ImDrawData* data,
                           ImU32 clear) {
  const VulkanApi& vk = device_.api();
  const ImVec4 colour = ImGui::ColorConvertU32ToFloat4(clear);
  auto attachment = vk_struct<VkRenderingAttachmentInfo>(VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO);
  attachment.imageView = view;
  attachment.imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  attachment.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  attachment.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  attachment.clearValue.color = {{colour.x, colour.y, colour.z, 1.0f}};
  auto rendering = vk_struct<VkRenderingInfo>(VK_STRUCTURE_TYPE_RENDERING_INFO);
  rendering.renderArea.extent = extent;
  rendering.layerCount = 1;
  rendering.colorAttachmentCount = 1;
  rendering.pColorAttachments = &attachment;
  vk.CmdBeginRendering(commands, &rendering);
  ImGui_ImplVulkan_RenderDrawData(data, commands);
  vk.CmdEndRendering(commands);
}

void transition(const VulkanApi& vk, VkCommandBuffer commands, VkImage image, VkImageLayout from, VkImageLayout to) {
  auto barrier = vk_struct<VkImageMemoryBarrier>(VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER);
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.oldLayout = from;
  barrier.newLayout = to;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr,
                        0, nullptr, 1, &barrier);
}

}  // namespace canopy::app
