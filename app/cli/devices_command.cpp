// canopy-cli devices: lists the Vulkan devices of the machine, with the reason for each that cannot be used.

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "engine/vulkan/device_selection.h"
#include "engine/vulkan/instance.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const vk::MatrixShape& shape) {
  return {{"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"a", vk::to_string(shape.a)},
          {"b", vk::to_string(shape.b)},
          {"c", vk::to_string(shape.c)},
          {"result", vk::to_string(shape.result)},
          {"scope", vk::to_string(shape.scope)},
          {"saturating", shape.saturating}};
}

ordered_json to_json(const vk::DeviceFeatures& features) {
  return {{"subgroup_size_control", features.subgroup_size_control},
          {"compute_full_subgroups", features.compute_full_subgroups},
          {"shader_float16", features.shader_float16},
          {"shader_int8", features.shader_int8},
          {"storage_16bit", features.storage_16bit},
          {"storage_8bit", features.storage_8bit},
          {"integer_dot_product", features.integer_dot_product},
          {"packed_dot_s8_accelerated", features.packed_dot_s8},
          {"packed_dot_u8_accelerated", features.packed_dot_u8},
          {"packed_dot_mixed_accelerated", features.packed_dot_mixed},
          {"bfloat16", features.bfloat16},
          {"bfloat16_matrix", features.bfloat16_matrix},
          {"cooperative_matrix", features.cooperative_matrix},
          {"pipeline_statistics", features.pipeline_statistics}};
}

// Sizes in bytes and invocations; "pinned" is the subgroup size that kernels ask for, 0 without a choice.
ordered_json limits_json(const vk::DeviceLimits& limits) {
  return {{"subgroup",
           {{"size", limits.subgroup_size},
            {"min", limits.min_subgroup_size},
            {"max", limits.max_subgroup_size},
            {"pinned", limits.pinned_subgroup}}},
          {"max_subgroups", limits.max_subgroups},
          {"max_invocations", limits.max_invocations},
          {"max_shared_bytes", limits.max_shared_bytes},
          {"max_storage_range", limits.max_storage_range},
          {"max_allocation", limits.max_allocation}};
}

ordered_json to_json(const vk::DeviceReport& report) {
  ordered_json shapes = ordered_json::array();
  for (const vk::MatrixShape& shape : report.matrix_shapes) shapes.push_back(to_json(shape));
  return {{"index", report.index},
          {"name", report.name},
          {"type", vk::to_string(report.type)},
          {"vendor", report.vendor},
          {"driver", report.driver_name},
          {"driver_version", report.driver_version},
          {"api_version", report.api_version},
          {"memory_bytes", report.memory_bytes},
          {"usable", report.usable},
          {"reason", report.reason},
          {"features", to_json(report.features)},
          {"limits", limits_json(report.limits)},
          {"matrix_shapes", shapes}};
}

int run_devices(bool as_json) {
  const std::vector<vk::DeviceReport> reports = vk::Instance().list_devices();
  if (as_json) {
    ordered_json list = ordered_json::array();
    for (const vk::DeviceReport& report : reports) list.push_back(to_json(report));
    std::cout << list.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    return 0;
  }
  if (reports.empty()) {
    std::cout << "The Vulkan loader lists no device: install the driver of your GPU, or mesa-vulkan-drivers.\n";
    return 0;
  }
  std::cout << vk::describe_devices(reports) << "\n";
  bool any_usable = false;
  for (const vk::DeviceReport& report : reports) any_usable = any_usable || report.usable;
  if (any_usable) {
    const size_t best = vk::select_device(reports, "");
    std::cout << "Used unless --device says otherwise: " << reports[best].index << "\n";
  }
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the Vulkan devices, and why one cannot be used");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print a JSON array");
  command->callback([&action, as_json] { action = [as_json] { return run_devices(*as_json); }; });
}

}  // namespace canopy::cli
