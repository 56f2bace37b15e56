#include "app/platform/vulkan.h"

#include <imgui_impl_vulkan.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/posix.h"

namespace canopy::app {

void VulkanApi::load_global() {
  // Never closed: drivers may crash when they are unloaded.
  static void* const loader = dlopen(kVulkanLoader, RTLD_NOW | RTLD_LOCAL);
  if (!loader)
    throw Error(ErrorKind::unavailable, "The window needs Vulkan, and " + std::string(kVulkanLoader) +
                                            " could not be opened. " + kInstallVulkan);
  GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  if (!GetInstanceProcAddr)
    throw Error(ErrorKind::unavailable, std::string(kVulkanLoader) + " has no vkGetInstanceProcAddr.");
#define CANOPY_UI_VK_LOAD(name) name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(nullptr, "vk" #name));
  CANOPY_UI_VK_GLOBAL(CANOPY_UI_VK_LOAD)
#undef CANOPY_UI_VK_LOAD
}

void VulkanApi::load_instance(VkInstance instance) {
#define CANOPY_UI_VK_LOAD(name) name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name));
  CANOPY_UI_VK_OPTIONAL(CANOPY_UI_VK_LOAD)
#undef CANOPY_UI_VK_LOAD
#define CANOPY_UI_VK_LOAD(name)                                                     \
  name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name)); \
  if (!(name))                                                                      \
    throw Error(ErrorKind::unavailable, "The Vulkan loader has no vk" #name         \
                                        "; the window needs Vulkan "                \
                                        "1.3.");
  CANOPY_UI_VK_INSTANCE(CANOPY_UI_VK_LOAD)
#undef CANOPY_UI_VK_LOAD
}

void check(VkResult result, const char* doing) {
  if (result >= 0) return;
  const std::string message =
      std::string(doing) + " failed in the window's graphics device: VkResult " + std::to_string(result) + ".";
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: throw Error(ErrorKind::out_of_memory, message);
    case VK_ERROR_DEVICE_LOST: throw Error(ErrorKind::device_lost, message);
    default: throw Error(ErrorKind::unavailable, message);
  }
}

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL on_validation(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                             const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  static_cast<std::vector<std::string>*>(user)->emplace_back(data->pMessage);
  return VK_FALSE;
}

bool has_layer(const VulkanApi& vk, const char* name) {
  uint32_t count = 0;
  check(vk.EnumerateInstanceLayerProperties(&count, nullptr), "Listing layers");
  std::vector<VkLayerProperties> layers(count);
  check(vk.EnumerateInstanceLayerProperties(&count, layers.data()), "Listing layers");
  for (const VkLayerProperties& layer : layers)
    if (std::strcmp(layer.layerName, name) == 0) return true;
  return false;
}

/// Lower is better: real hardware before software devices.
int rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 3;
    default: return 4;
  }
}

}  // namespace

UiDevice::UiDevice(const Options& options) {
  try {
    api_.load_global();
    create_instance(options);
    if (options.make_surface) surface_ = options.make_surface(instance_);
    choose_physical_device();
    create_device();
  } catch (...) {
    destroy();
    throw;
  }
}

UiDevice::~UiDevice() {
  destroy();
}

void UiDevice::destroy() {
  if (device_) {
    api_.DeviceWaitIdle(device_);
    if (pool_) api_.DestroyCommandPool(device_, pool_, nullptr);
    api_.DestroyDevice(device_, nullptr);
  }
  if (!instance_) return;
  if (surface_) api_.DestroySurfaceKHR(instance_, surface_, nullptr);
  if (messenger_) api_.DestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (api_.DestroyInstance) api_.DestroyInstance(instance_, nullptr);
}

void UiDevice::create_instance(const Options& options) {
  const bool validate = options.validation && has_layer(api_, kValidationLayer);
  std::vector<const char*> extensions = options.instance_extensions;
  // Dear ImGui's backend needs the surface functions even where no surface is made.
  if (extensions.empty()) extensions.push_back(VK_KHR_SURFACE_EXTENSION_NAME);
  if (validate) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  auto debug = vk_struct<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  debug.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  debug.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  debug.pfnUserCallback = on_validation;
  debug.pUserData = &validation_messages_;
  auto app = vk_struct<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  app.pApplicationName = "Canopy";
  app.apiVersion = VK_API_VERSION_1_3;
  auto info = vk_struct<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pNext = validate ? &debug : nullptr;
  info.pApplicationInfo = &app;
  info.enabledLayerCount = validate ? 1 : 0;
  info.ppEnabledLayerNames = &kValidationLayer;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult result = api_.CreateInstance(&info, nullptr, &instance_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    throw Error(ErrorKind::unavailable,
                std::string("The window needs a Vulkan 1.3 driver, and none is installed. ") + kInstallVulkan);
  check(result, "Creating a Vulkan instance");
  api_.load_instance(instance_);
  if (validate)
    check(api_.CreateDebugUtilsMessengerEXT(instance_, &debug, nullptr, &messenger_), "Listening to validation");
}

bool UiDevice::suits(VkPhysicalDevice candidate, uint32_t& family) const {
  VkPhysicalDeviceProperties properties;
  api_.GetPhysicalDeviceProperties(candidate, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_3) return false;
  uint32_t count = 0;
  api_.GetPhysicalDeviceQueueFamilyProperties(candidate, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api_.GetPhysicalDeviceQueueFamilyProperties(candidate, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)) continue;
    VkBool32 presents = VK_TRUE;
    if (surface_) api_.GetPhysicalDeviceSurfaceSupportKHR(candidate, i, surface_, &presents);
    if (!presents) continue;
    family = i;
    return true;
  }
  return false;
}

void UiDevice::choose_physical_device() {
  uint32_t count = 0;
  check(api_.EnumeratePhysicalDevices(instance_, &count, nullptr), "Listing Vulkan devices");
  std::vector<VkPhysicalDevice> devices(count);
  check(api_.EnumeratePhysicalDevices(instance_, &count, devices.data()), "Listing Vulkan devices");
  int best = 100;
  for (VkPhysicalDevice candidate : devices) {
    uint32_t family = 0;
    if (!suits(candidate, family)) continue;
    VkPhysicalDeviceProperties properties;
    api_.GetPhysicalDeviceProperties(candidate, &properties);
    if (rank(properties.deviceType) >= best) continue;
    best = rank(properties.deviceType);
    physical_ = candidate;
    queue_family_ = family;
    name_ = properties.deviceName;
    software_ = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  }
  if (!physical_)
    throw Error(ErrorKind::unavailable,
                "None of the " + std::to_string(count) + " Vulkan devices can draw the window: " +
                    "it needs Vulkan 1.3 with graphics" + (surface_ ? " and presentation to this display." : "."));
  api_.GetPhysicalDeviceMemoryProperties(physical_, &memory_);
}

void UiDevice::create_device() {
  const float priority = 1.0f;
  auto queue = vk_struct<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto features = vk_struct<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  features.dynamicRendering = VK_TRUE;  // mandatory in 1.3
  const char* swapchain = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
  auto info = vk_struct<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = surface_ ? 1 : 0;
  info.ppEnabledExtensionNames = &swapchain;
  check(api_.CreateDevice(physical_, &info, nullptr, &device_), "Opening the Vulkan device");
  api_.GetDeviceQueue(device_, queue_family_, 0, &queue_);
  auto pool = vk_struct<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = queue_family_;
  check(api_.CreateCommandPool(device_, &pool, nullptr, &pool_), "Creating a command pool");
}

uint32_t UiDevice::memory_type(uint32_t bits, VkMemoryPropertyFlags flags) const {
  for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i)
    if ((bits >> i & 1u) && (memory_.memoryTypes[i].propertyFlags & flags) == flags) return i;
  throw Error(ErrorKind::unavailable,
              "The device " + name_ + " has no memory type with the properties a picture needs.");
}

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
  if (marks_) record_mark(frame, target);
  VkImageLayout layout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  if (readback) {
    transition(vk, frame.commands, target.image, layout, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    layout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    readback->record(frame.commands, target.image);
  }
  transition(vk, frame.commands, target.image, layout, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
  check(vk.EndCommandBuffer(frame.commands), "Recording a frame");
}

namespace {

constexpr uint32_t kMarkCell = 4;  // pixels
constexpr uint32_t kMarkCells = 32;

/// The cells of a frame's mark, the first in the lowest bit.
uint32_t mark_of(uint64_t frame) {
  const uint32_t number = static_cast<uint32_t>(frame & 0xFFFFFFu);
  uint32_t parity = 0;
  for (uint32_t shift = 0; shift < 24; shift += 4) parity ^= (number >> shift) & 0xFu;
  return 0x5u | (number << 4) | (parity << 28);
}

}  // namespace

void WindowTarget::record_mark(const Frame& frame, const Target& target) {
  if (extent_.width < kMarkCells * kMarkCell || extent_.height < kMarkCell) return;
  const VulkanApi& vk = device_.api();
  transition(vk, frame.commands, target.image, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
             VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL);
  auto attachment = vk_struct<VkRenderingAttachmentInfo>(VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO);
  attachment.imageView = target.view;
  attachment.imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  attachment.loadOp = VK_ATTACHMENT_LOAD_OP_LOAD;
  attachment.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  auto rendering = vk_struct<VkRenderingInfo>(VK_STRUCTURE_TYPE_RENDERING_INFO);
  rendering.renderArea.extent = extent_;
  rendering.layerCount = 1;
  rendering.colorAttachmentCount = 1;
  rendering.pColorAttachments = &attachment;
  vk.CmdBeginRendering(frame.commands, &rendering);
  const uint32_t mark = mark_of(presented_ + 1);
  for (uint32_t cell = 0; cell < kMarkCells; ++cell) {
    VkClearAttachment clear{};
    clear.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT;
    const float grey = (mark >> cell & 1u) != 0 ? 1.0f : 0.0f;
    clear.clearValue.color = {{grey, grey, grey, 1.0f}};
    VkClearRect rect{};
    rect.rect.offset.x = static_cast<int32_t>(cell * kMarkCell);
    rect.rect.extent = {kMarkCell, kMarkCell};
    rect.layerCount = 1;
    vk.CmdClearAttachments(frame.commands, 1, &clear, 1, &rect);
  }
  vk.CmdEndRendering(frame.commands);
}

// How a picture could be shown that is not the newest, and what stands against it:
// - An image presented before its drawing ended. The semaphore `drawn` orders the two. On software devices it is the
//   processor that copies the image to the display, out of memory that later drawing writes into, so there the fence is
//   waited for as well before the image is handed over (the frame is waited for anyway, see DesktopWindow::end_frame).
// - An image that was taken and presented without being drawn. Between the two nothing returns; what fails throws and
//   ends the window. Each image is cleared and drawn anew, none keeps what it had.
// - Semaphores used again too early. `acquired` belongs to a frame in flight, whose fence has been waited for; `drawn`
//   belongs to an image, which is only taken again when its presentation is over.
// - The last picture of an old swapchain that the display still holds when the first of the new one is shown, and shows
//   after it, and pictures that are presented too small or too large (suboptimal). So a frame is drawn again as long as
//   the swapchain is stale, and what is to stay is presented at least twice (DesktopWindow::looks_as_before).
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
  if (readback || device_.is_software())
    check(vk.WaitForFences(device_.handle(), 1, &frame.done, VK_TRUE, UINT64_MAX), "Waiting for a frame");
  if (readback) *capture = readback->take(format_.format == VK_FORMAT_B8G8R8A8_UNORM);
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
  if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_SUBOPTIMAL_KHR) stale_ = true;
  if (result == VK_ERROR_OUT_OF_DATE_KHR) return false;
  check(result, "Presenting a frame");
  ++presented_;
  return true;
}

void WindowTarget::wait() {
  device_.api().QueueWaitIdle(device_.queue());
}

}  // namespace canopy::app
