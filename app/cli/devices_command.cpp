// canopy-cli devices: lists the Vulkan devices of the machine, with the reason for each that cannot be used.

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "engine/vulkan/device_report_json.h"
#include "engine/vulkan/device_selection.h"
#include "engine/vulkan/instance.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

int run_devices(bool as_json) {
  const std::vector<vk::DeviceReport> reports = vk::Instance().list_devices();
  if (as_json) {
    ordered_json list = ordered_json::array();
    for (const vk::DeviceReport& report : reports) list.push_back(vk::to_json(report));
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
