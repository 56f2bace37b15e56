#pragma once
// What is said of a device in lists: its memory, its driver, and how its self-test went.

#include <string>

#include "app/models/models_state.h"

namespace canopy::app {

/// "llvmpipe (LLVM 15.0.6, 256 bits)" -> "llvmpipe": what drivers put in brackets is for tooltips.
std::string without_brackets(const std::string& text);

/// "24.0 GiB"; "15.4 GiB shared" where the processor has the same memory; empty where it is not known.
std::string memory_words(const DeviceChoice& device);

/// "Vulkan 1.3, radv Mesa 25.2"
std::string driver_words(const DeviceChoice& device);

/// "passed the self-test", or what is known instead.
std::string self_test_words(const ModelsState& models, const DeviceChoice& device);

/// All on one line: "discrete, 24.0 GiB, Vulkan 1.3, radv Mesa 25.2"
std::string device_words(const DeviceChoice& device);

/// Everything, one thing a line, nothing shortened.
std::string device_details(const ModelsState& models, const DeviceChoice& device);

}  // namespace canopy::app
