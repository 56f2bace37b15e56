#pragma once
// The Vulkan backend of the device interface.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/backend.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/physical_device.h"
#include "engine/vulkan/product_config.h"
#include "engine/vulkan/product_tuner.h"

namespace canopy::vk {

// Choosing one Vulkan device of those reported. Pure functions.

/// The reports as choose_device() takes them, by their indices.
std::vector<ListedDevice> listed(std::span<const DeviceReport> reports);

/// Position in `reports` of the device that `selector` names, as choose_device() says.
size_t select_device(std::span<const DeviceReport> reports, std::string_view selector);

}  // namespace canopy::vk

namespace canopy {

struct VulkanDeviceOptions {
  std::string selector;                // see vk::select_device
  std::filesystem::path cache_folder;  // pipelines and chosen variants; empty: nothing is kept
  vk::InstanceOptions instance;
  vk::ContextOptions context;  // its pipeline cache file is set from cache_folder

  // For tests: a variant instead of the measured choice.
  std::optional<vk::FmaConfig> fma;
  std::optional<vk::MatrixConfig>
      matrix;  // with the device's subgroup size, and its shape but where that is of integers
  std::optional<vk::KernelFamily> family;
  std::optional<bool> as_software;          // false: the variants of a GPU, whatever the device is
  std::optional<uint32_t> max_tile;         // columns
  bool separate_steps = false;              // of the families fma and matrix: rotation and the merge of attention
  std::optional<vk::TuningOptions> tuning;  // also where kernels would follow from rules
};

/// Opens the device a selector names. Throws unavailable (no driver, no such device, device unusable) or device_lost.
std::unique_ptr<Device> open_vulkan_device(const VulkanDeviceOptions& options = {});

/// Vulkan as one of the backends. `list`: the devices, for tests that make them up; those of the loader by default.
Backend vulkan_backend(std::function<std::vector<vk::DeviceReport>()> list = {});

/// Messages of the validation layers so far; 0 for devices of other backends or without validation.
std::vector<vk::ValidationMessage> validation_messages(const Device& device);

/// How often the host has submitted work to a device so far; 0 for devices of other backends.
uint64_t submission_count(const Device& device);

}  // namespace canopy
