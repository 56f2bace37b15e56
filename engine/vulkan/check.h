#pragma once
// Turning VkResult into canopy::Error, in one place.

#include <volk.h>

#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace canopy::vk {

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

}  // namespace canopy::vk
