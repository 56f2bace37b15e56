#pragma once
// The commands of canopy-cli. Each add_… function adds a command with its options to the parser; the chosen one sets
// the action, which runs after parsing. Nothing of Vulkan is used before. Actions throw canopy::Error, and UsageError
// for wrong arguments.

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>

namespace canopy::cli {

/// The arguments of a command contradict each other: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the exit code.
using Action = std::function<int()>;

void add_devices(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_chat(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_make_model(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_results(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_logits(CLI::App& app, Action& action);  // hidden: for tools/bench_llamacpp

}  // namespace canopy::cli
