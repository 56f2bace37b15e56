#pragma once
// The commands of canopy-cli. Each adds its options to the parser and, when it was chosen, runs after parsing; nothing
// of Vulkan is touched before. Errors leave as canopy::Error, wrong arguments as UsageError.

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>

namespace canopy::cli {

/// What a command was asked is contradictory: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the exit code.
using Action = std::function<int()>;

void add_devices(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_logits(CLI::App& app, Action& action);  // hidden: for tools/bench_llamacpp

}  // namespace canopy::cli
