#pragma once
// The options of all commands that use a model, and opening that model.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/atomic_file.h"
#include "engine/compute/backend.h"
#include "engine/session/engine.h"

namespace canopy::cli {

struct ModelChoice {
  std::string model;    // empty: the default model in the cache
  std::string drafter;  // empty: the one that comes with Canopy, where it fits; "none": none
  std::string device;
  std::string kv = "f16";
  uint32_t context = 0;
  std::string quantize = "none";
  DeviceSettings settings;
  bool self_test = true;
  uint32_t max_width = 128;  // most rows of a pass
  double calibration_s = 0;  // see OpenRequest
};
void add_model_options(CLI::App& command, ModelChoice& choice);

/// The path that was chosen, or that of the default model. Throws bad_input where there is nothing.
std::string model_path(const ModelChoice& choice);

/// Throws bad_input, before anything is measured or written, where one of the `outputs` of a command is one of its
/// `inputs`, a file of its model or drafter, or another output. Empty paths and "-" are none.
void require_outputs_apart(std::span<const NamedFile> outputs, std::vector<NamedFile> inputs = {},
                           const ModelChoice* model = nullptr);

/// `name` for each of these files.
std::vector<NamedFile> named_files(const std::string& name, const std::vector<std::filesystem::path>& paths);

/// The model comes after the device, as members are destroyed in reverse order.
struct OpenedModel {
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> model;
};

/// Shows progress and warnings on standard error. Ctrl-C cancels it.
OpenedModel open_model(const ModelChoice& choice);

}  // namespace canopy::cli
