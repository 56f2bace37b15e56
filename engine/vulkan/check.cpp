#include "engine/vulkan/check.h"

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

}  // namespace canopy::vk
