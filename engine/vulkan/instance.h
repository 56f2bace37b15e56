#pragma once
// The Vulkan loader and instance, opened at run time, and results of Vulkan as errors.

#include <volk.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/vulkan/physical_device.h"

namespace canopy::vk {

// Turning VkResult into canopy::Error, in one place.

/// "VK_ERROR_DEVICE_LOST", or "VkResult -1234" for a code this file does not know.
std::string result_name(VkResult result);

/// The Error of a failed call; `doing` completes "… failed", as in "allocating 64 MiB for weights".
/// Out-of-memory codes become out_of_memory, a lost device device_lost, a missing driver, layer, extension or feature
/// unavailable, and everything else (a wrong use of the API) bad_input.
Error vk_error(VkResult result, std::string_view doing);

/// Throws vk_error for any error code; success and status codes (VK_INCOMPLETE, VK_TIMEOUT …) come back.
inline VkResult check_vk(VkResult result, std::string_view doing) {
  if (result < 0) [[unlikely]] {
    throw vk_error(result, doing);
  }
  return result;
}

// The Vulkan loader and instance. The loader is opened at run time, so a program that links this starts without it.

enum class Validation {
  off,
  core,  // the Khronos layer's core checks
  sync,  // those and its synchronisation checks
};

/// From the environment variable CANOPY_VALIDATION: unset, empty or "off", "core", "sync"; throws bad_input otherwise.
Validation validation_from_environment();

struct InstanceOptions {
  Validation validation = validation_from_environment();
};

/// A warning or error of the validation layer.
struct ValidationMessage {
  bool is_error = false;
  std::string id;  // "VUID-…"
  std::string text;
};

struct MessageLog;

/// Owns the VkInstance. Contexts opened on it must be gone before it is.
class Instance {
 public:
  /// Throws unavailable, saying what to install, when there is no loader, no Vulkan 1.3 instance, or no validation
  /// layer though one is asked for.
  explicit Instance(const InstanceOptions& options = {});
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// Every physical device, the unusable ones with the reason.
  std::vector<DeviceReport> list_devices() const;

  VkInstance handle() const { return handle_; }
  /// The device at DeviceReport::index; throws bad_input if there is none.
  VkPhysicalDevice physical_device(uint32_t index) const;

  bool validating() const { return messenger_ != VK_NULL_HANDLE; }
  bool has_debug_names() const { return debug_names_; }
  /// Warnings and errors collected since the start or the last clear; at most the first 1000 are kept.
  std::vector<ValidationMessage> messages() const;
  uint64_t message_count() const;
  void clear_messages();

 private:
  std::unique_ptr<MessageLog> log_;  // filled by the layer from any thread
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  bool debug_names_ = false;
};

}  // namespace canopy::vk
