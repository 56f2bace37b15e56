#include "app/cli/bench_load_command.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "app/cli/bench_load.h"
#include "app/cli/bench_report.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "engine/base/mapped_file.h"
#include "engine/devices/devices.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

ordered_json seconds_of(const std::optional<double>& seconds) {
  return seconds ? ordered_json(*seconds) : ordered_json(nullptr);
}

ordered_json to_json(const LoadBench& result, const DeviceInfo& device, const std::string& model) {
  ordered_json json = {{"device", device.name},
                       {"driver", device.driver},
                       {"backend", device.backend},
                       {"model", model},
                       {"file_bytes", result.file_bytes},
                       {"device_bytes", result.device_bytes},
                       {"seconds",
                        {{"disk", seconds_of(result.disk)},
                         {"cached_file", result.cached},
                         {"copy", result.copy},
                         {"upload", seconds_of(result.upload)},
                         {"repack", seconds_of(result.repack)},
                         {"load_cold", seconds_of(result.load_cold)},
                         {"load_warm", result.load_warm}}}};
  const auto shares = [](const std::optional<double>& load, double bound, double repack) -> ordered_json {
    if (!load) return nullptr;
    return {{"of_reading_and_copying", bound / *load}, {"of_slowest_stage", std::max(bound, repack) / *load}};
  };
  json["share_cold"] = shares(result.load_cold, result.cold_bound(), result.repack.value_or(0));
  json["share_warm"] = shares(result.load_warm, result.warm_bound(), result.repack.value_or(0));
  return json;
}

void print_stage(const char* name, const std::optional<double>& seconds, uint64_t bytes) {
  char line[128];
  if (seconds) {
    std::snprintf(line, sizeof line, "%-34s %9.3f s %8.2f GB/s\n", name, *seconds,
                  static_cast<double>(bytes) / *seconds * 1e-9);
  } else {
    std::snprintf(line, sizeof line, "%-34s %11s\n", name, "not known");
  }
  std::cout << line;
}

void print(const LoadBench& result, const DeviceInfo& device, const std::string& model) {
  std::cout << "model    " << model << "\n"
            << "device   " << device.name << " (" << device.driver << ")\n"
            << "weights  " << fixed(static_cast<double>(result.file_bytes) * 1e-6, 1) << " MB in the file, "
            << fixed(static_cast<double>(result.device_bytes) * 1e-6, 1) << " MB on the device\n\n";
  print_stage("reading from the disk", result.disk, result.file_bytes);
  print_stage("reading the file in memory", result.cached, result.file_bytes);
  print_stage("copying memory", result.copy, result.file_bytes);
  print_stage("copying to the device", result.upload, result.device_bytes);
  print_stage("repacking", result.repack, result.file_bytes);
  print_stage("load from the disk", result.load_cold, result.file_bytes);
  print_stage("load of the file in memory", result.load_warm, result.file_bytes);
  const double repack = result.repack.value_or(0);
  const auto share = [](double bound, double load) { return fixed(100 * bound / load, 0) + "%"; };
  std::cout << "\nA load cannot be faster than its slowest stage. Of that stage's rate, and of the slowest without\n"
               "repacking, which more cores would speed up, it reaches ";
  if (result.load_cold) {
    std::cout << share(std::max(result.cold_bound(), repack), *result.load_cold) << " and "
              << share(result.cold_bound(), *result.load_cold) << " from the disk, ";
  }
  std::cout << share(std::max(result.warm_bound(), repack), result.load_warm) << " and "
            << share(result.warm_bound(), result.load_warm) << " with the file in memory.\n";
}

}  // namespace

int run_load_bench(const ModelChoice& model, uint32_t repeats, const std::string& json) {
  LoadBenchSettings settings;
  settings.repeats = repeats;
  settings.quantize = quantize_on_load_from(model.quantize).value_or(QuantizeOnLoad::none);
  if (settings.quantize == QuantizeOnLoad::automatic) {
    throw UsageError("--load measures one way to load; --quantize may be none, q8_0 or q4_k here.");
  }
  catch_interrupts();
  const std::filesystem::path path = model_path(model);
  const std::unique_ptr<Device> device = open_device(model.device, model.settings);
  const ModelFile file = ModelFile::open(path);
  const std::string name = shown(path.filename().empty() ? path.parent_path().filename() : path.filename());
  const LoadBench result = bench_load(
      file, *device, settings, [](const char* what) { note(what); }, interruption());
  if (!json.empty()) write_report(json, json_text(to_json(result, device->info(), name)));
  if (json != "-") print(result, device->info(), name);
  return 0;
}

}  // namespace canopy::cli
