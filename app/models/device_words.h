#pragma once
// Short texts about a device for lists: memory, driver and result of the self-test.

#include <string>
#include <vector>

#include "app/models/models_state.h"

namespace canopy::app {

/// "llvmpipe (LLVM 15.0.6, 256 bits)" -> "llvmpipe": details in brackets are shown in tooltips only.
std::string without_brackets(const std::string& text);

/// "24.0 GiB"; "15.4 GiB shared" where the memory is the processor's; empty where it is not known.
std::string memory_words(const DeviceChoice& device);

/// "CUDA", "Vulkan": how a backend is called, by the devices that it lists.
std::string backend_words(const std::vector<DeviceChoice>& devices, const std::string& backend);

/// "passed the self-test", or that it failed or has not run yet.
std::string self_test_words(const ModelsState& models, const DeviceChoice& device);

/// All of it on one line: "discrete, 24.0 GiB, Vulkan 1.3, radv Mesa 25.2"
std::string device_words(const DeviceChoice& device);

/// Everything that is known, one property on each line, nothing shortened.
std::string device_details(const ModelsState& models, const DeviceChoice& device);

}  // namespace canopy::app
