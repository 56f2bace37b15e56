#include "app/gfx/ui_device.h"

#include <cstring>

#include "engine/base/error.h"

namespace canopy::app {
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
                "The window needs a Vulkan 1.3 driver and none is installed (Debian: "
                "mesa-vulkan-drivers; NVIDIA: nvidia-driver).");
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

}  // namespace canopy::app
