#include "engine/vulkan/instance.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "engine/base/posix.h"

namespace canopy::vk {

std::string result_name(VkResult result) {
#define CANOPY_RESULT(code) \
  case code: return #code;
  switch (result) {
    CANOPY_RESULT(VK_SUCCESS)
    CANOPY_RESULT(VK_NOT_READY)
    CANOPY_RESULT(VK_TIMEOUT)
    CANOPY_RESULT(VK_INCOMPLETE)
    CANOPY_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY)
    CANOPY_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    CANOPY_RESULT(VK_ERROR_INITIALIZATION_FAILED)
    CANOPY_RESULT(VK_ERROR_DEVICE_LOST)
    CANOPY_RESULT(VK_ERROR_MEMORY_MAP_FAILED)
    CANOPY_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    CANOPY_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT)
    CANOPY_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    CANOPY_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER)
    CANOPY_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    CANOPY_RESULT(VK_ERROR_FRAGMENTED_POOL)
    CANOPY_RESULT(VK_ERROR_UNKNOWN)
    CANOPY_RESULT(VK_ERROR_INVALID_SHADER_NV)
    CANOPY_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY)
    CANOPY_RESULT(VK_ERROR_FRAGMENTATION)
    default: return "VkResult " + std::to_string(static_cast<int>(result));
  }
#undef CANOPY_RESULT
}

Error vk_error(VkResult result, std::string_view doing) {
  const std::string message = std::string(doing) + " failed: " + result_name(result);
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return Error(ErrorKind::out_of_memory,
                   message +
                       " (the host's memory is full). Close other programs, or choose a shorter context "
                       "or a smaller model.");
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return Error(ErrorKind::out_of_memory,
                   message +
                       " (the device's memory is full). Close other programs that use it, or choose a shorter "
                       "context, a smaller model, or another device.");
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_FRAGMENTATION:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED: return Error(ErrorKind::out_of_memory, message + ".");
    case VK_ERROR_DEVICE_LOST:
      return Error(ErrorKind::device_lost,
                   message + ". The device stopped responding or was reset; it must be opened again.");
    case VK_ERROR_INITIALIZATION_FAILED:
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_INCOMPATIBLE_DRIVER: return Error(ErrorKind::unavailable, message + ".");
    default: return Error(ErrorKind::bad_input, message + ".");
  }
}

struct MessageLog {
  mutable std::mutex mutex;
  std::vector<ValidationMessage> messages;
  uint64_t count = 0;
};

namespace {

constexpr size_t max_kept_messages = 1000;
constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

// Called by the layer from whichever thread made the call.
VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT /*types*/,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  ValidationMessage message{.is_error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0,
                            .id = data->pMessageIdName == nullptr ? "" : data->pMessageIdName,
                            .text = data->pMessage == nullptr ? "" : data->pMessage};
  log(message.is_error ? LogLevel::error : LogLevel::warning, message.text);
  auto& kept = *static_cast<MessageLog*>(user);
  const std::lock_guard lock(kept.mutex);
  ++kept.count;
  if (kept.messages.size() < max_kept_messages) kept.messages.push_back(std::move(message));
  return VK_FALSE;  // the call goes on
}

// volk keeps process-wide pointers; the loader is opened once.
void open_loader() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (volkGetInstanceVersion() == 0 && volkInitialize() != VK_SUCCESS) {
    throw Error(ErrorKind::unavailable,
                "The Vulkan loader (" + std::string(kVulkanLoader) + ") was not found. " + kInstallVulkan);
  }
  const uint32_t version = volkGetInstanceVersion();
  if (version < VK_API_VERSION_1_3) {
    throw Error(ErrorKind::unavailable,
                "The Vulkan loader offers version " + std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
                    std::to_string(VK_API_VERSION_MINOR(version)) + ", Canopy needs 1.3. " + kInstallVulkan);
  }
}

bool has_layer(const char* name) {
  uint32_t count = 0;
  check_vk(vkEnumerateInstanceLayerProperties(&count, nullptr), "listing Vulkan layers");
  std::vector<VkLayerProperties> layers(count);
  check_vk(vkEnumerateInstanceLayerProperties(&count, layers.data()), "listing Vulkan layers");
  layers.resize(count);
  return std::any_of(layers.begin(), layers.end(),
                     [&](const VkLayerProperties& l) { return std::strcmp(l.layerName, name) == 0; });
}

bool has_instance_extension(const char* name) {
  uint32_t count = 0;
  // The first call that makes the loader read the drivers' files.
  const VkResult result = vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr);
  if (result != VK_SUCCESS) {
    throw Error(
        ErrorKind::unavailable,
        "The Vulkan loader cannot read the list of its drivers (" + result_name(result) +
            "). Install the driver of your graphics card again, or correct the file that VK_DRIVER_FILES names.");
  }
  std::vector<VkExtensionProperties> extensions(count);
  check_vk(vkEnumerateInstanceExtensionProperties(nullptr, &count, extensions.data()), "listing Vulkan extensions");
  extensions.resize(count);
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(void* log) {
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  // Only the layer's verdicts: general messages are the loader's, about drivers that are not ours to judge.
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  info.pUserData = log;
  return info;
}

VkInstance create_instance(Validation validation, bool debug_names, void* log) {
  VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  app.pApplicationName = "Canopy";
  app.pEngineName = "Canopy";
  app.apiVersion = VK_API_VERSION_1_3;

  std::vector<const char*> extensions;
  if (debug_names) {
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(log);
  const VkValidationFeatureEnableEXT sync = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &sync;
  features.pNext = &messenger;

  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &app;
  if (validation != Validation::off) {
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &validation_layer;
    info.pNext = &messenger;
  }
  if (validation == Validation::sync) {
    extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
    info.pNext = &features;
  }
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();

  VkInstance instance = VK_NULL_HANDLE;
  const VkResult result = vkCreateInstance(&info, nullptr, &instance);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    throw Error(ErrorKind::unavailable, std::string("No Vulkan driver was found. ") + kInstallVulkan);
  }
  check_vk(result, "creating the Vulkan instance");
  return instance;
}

std::vector<VkPhysicalDevice> physical_devices(VkInstance instance) {
  std::vector<VkPhysicalDevice> devices;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {  // a device may appear between the two calls
    uint32_t count = 0;
    result = vkEnumeratePhysicalDevices(instance, &count, nullptr);
    if (result == VK_ERROR_INITIALIZATION_FAILED) {
      return {};  // drivers are installed, but none found hardware
    }
    check_vk(result, "listing Vulkan devices");
    devices.resize(count);
    result = check_vk(vkEnumeratePhysicalDevices(instance, &count, devices.data()), "listing Vulkan devices");
    devices.resize(count);
  }
  return devices;
}

}  // namespace

Validation validation_from_environment() {
  const char* value = std::getenv("CANOPY_VALIDATION");
  const std::string word = value == nullptr ? "" : value;
  if (word.empty() || word == "off") {
    return Validation::off;
  }
  if (word == "core") {
    return Validation::core;
  }
  if (word == "sync") {
    return Validation::sync;
  }
  throw bad_input("CANOPY_VALIDATION is \"" + word + "\"; it may be off, core or sync.");
}

Instance::Instance(const InstanceOptions& options) : log_(std::make_unique<MessageLog>()) {
  open_loader();
  if (options.validation != Validation::off && !has_layer(validation_layer)) {
    throw Error(ErrorKind::unavailable,
                "Validation was asked for, but the Khronos validation layer is not installed. On Debian and Ubuntu the "
                "package is vulkan-validationlayers.");
  }
  debug_names_ = has_instance_extension(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  handle_ = create_instance(options.validation, debug_names_, log_.get());
  // Not volkLoadDevice: the instance's entry points dispatch by object, so several devices can be open at once.
  volkLoadInstance(handle_);
  if (options.validation != Validation::off && debug_names_) {
    const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(log_.get());
    const VkResult result = vkCreateDebugUtilsMessengerEXT(handle_, &info, nullptr, &messenger_);
    if (result < 0) {
      vkDestroyInstance(handle_, nullptr);
      throw vk_error(result, "creating the debug messenger");
    }
  }
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) {
    vkDestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
  }
  vkDestroyInstance(handle_, nullptr);
}

std::vector<DeviceReport> Instance::list_devices() const {
  std::vector<DeviceReport> reports;
  for (const VkPhysicalDevice device : physical_devices(handle_)) {
    reports.push_back(report_device(handle_, device, static_cast<uint32_t>(reports.size())));
  }
  return reports;
}

VkPhysicalDevice Instance::physical_device(uint32_t index) const {
  const std::vector<VkPhysicalDevice> devices = physical_devices(handle_);
  if (index >= devices.size()) {
    throw bad_input("There is no Vulkan device " + std::to_string(index) + "; " + std::to_string(devices.size()) +
                    " were found.");
  }
  return devices[index];
}

std::vector<ValidationMessage> Instance::messages() const {
  const std::lock_guard lock(log_->mutex);
  return log_->messages;
}

uint64_t Instance::message_count() const {
  const std::lock_guard lock(log_->mutex);
  return log_->count;
}

void Instance::clear_messages() {
  const std::lock_guard lock(log_->mutex);
  log_->messages.clear();
  log_->count = 0;
}

}  // namespace canopy::vk
