#pragma once
// The commands of canopy-cli, and the options of all commands that use a model. Each add_... function adds a command to
// the parser; the chosen one sets the action, which runs after parsing.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/base/files.h"
#include "engine/compute/backend.h"
#include "engine/session/engine.h"

namespace canopy::cli {

// Nothing of Vulkan is used before an action runs. Actions throw canopy::Error, and UsageError for wrong arguments.

/// The arguments of a command contradict each other: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the exit code.
using Action = std::function<int()>;

void add_devices(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_get(CLI::App& app, Action& action);
void add_models(CLI::App& app, Action& action);
void add_chat(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_make_model(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_results(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_logits(CLI::App& app, Action& action);  // hidden: for tools/bench_llamacpp

// The options of all commands that use a model, and opening that model.

struct ModelChoice {
  std::string model;    // empty: the default model in the cache
  std::string drafter;  // empty: the one that comes with Canopy, where it fits; "none": none
  std::string device;
  std::string kv = "f16";
  uint32_t context = 0;
  std::string quantize = "none";
  DeviceSettings settings;
  bool self_test = true;
  uint32_t max_width = 128;   // most rows of a pass
  uint32_t texts = 1;         // see OpenRequest
  uint32_t most_texts = 1;    // likewise
  double calibration_s = 0;   // see OpenRequest
  bool keeps_learnt = false;  // likewise
  std::string replies;        // folder of earlier replies; empty: none are kept
  bool replies_read_only = false;
};
void add_model_options(CLI::App& command, ModelChoice& choice);

/// An error that CLI11 shows, for a list that parse_sources() refuses.
std::string sources_problem(const std::string& list);
/// --sources, which may be given several times: each names a set of sources to measure with.
CLI::Option* add_source_sets(CLI::App& command, std::vector<DraftSources>& sets);
/// --sources-from: a folder of earlier replies to draft from, too. Empty where it is not given.
CLI::Option* add_sources_from(CLI::App& command, std::string& folder);
/// The sets of sources that are measured: where earlier replies are named and none of the sets asks them, all do.
std::vector<DraftSources> with_earlier_replies(std::vector<DraftSources> sets, const std::string& folder);
/// The files of that folder, which outputs must not replace. Throws UsageError where it is none.
std::vector<NamedFile> earlier_reply_files(const std::string& folder);
/// A measurement with earlier replies that are not there would pass for one with them: throws bad_input where the
/// folder has none of this model.
void require_earlier_replies(const Engine& model, const std::string& folder);
/// --accept: the rates by which drafted tokens are accepted in place of the target's own choice. Empty where it is not
/// given.
CLI::Option* add_accept_rates(CLI::App& command, std::vector<double>& rates);
/// "acceptance by given rates (0.8,0.7): the text is not the model's"
std::string accept_rates_words(const std::vector<double>& rates);
/// The sets that a mode is measured with: all sources together where none are named, and in mode ar.
std::vector<DraftSources> sources_of(DecodeMode mode, const std::vector<DraftSources>& sets);
/// Of these, the options of the device alone: --kernels and --threads.
void add_device_settings(CLI::App& command, DeviceSettings& settings);

/// The drafter as choose_drafter() takes it, a name as path_of_model() finds it; empty where none was chosen.
std::string drafter_path(const ModelChoice& choice);

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
