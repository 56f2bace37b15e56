// canopy-cli devices: lists the devices of the machine, with the reason for each that cannot be used.

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "engine/base/error.h"
#include "engine/devices/devices.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

int run_devices(bool as_json) {
  const MachineDevices machine = find_devices();
  const std::vector<ListedDevice> devices = machine.listed();
  if (devices.empty()) list_devices();  // says why
  if (as_json) {
    std::cout << devices_json(machine).dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    return 0;
  }
  if (!devices.empty()) std::cout << describe_devices(devices) << "\n";
  for (const MachineDevices::Problem& problem : machine.problems) std::cout << problem.sentence << "\n";
  if (std::ranges::any_of(devices, &ListedDevice::usable)) {
    const ListedDevice& best = devices[choose_device(devices, "", names_of(all_backends()))];
    std::cout << "Used unless --device says otherwise: " << best.number << " (" << best.id() << ")\n";
  }
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the devices of all backends, and why one cannot be used");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print a JSON array");
  command->callback([&action, as_json] { action = [as_json] { return run_devices(*as_json); }; });
}

}  // namespace canopy::cli
