#pragma once
// The part of `canopy-cli bench` that compares ways to decode: --modes and --forced.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/model_options.h"

namespace canopy::cli {

struct ModesOptions {
  std::vector<std::string> modes;
  std::vector<uint32_t> budgets = {4, 16, 64};
  std::vector<std::string> prompts;  // files and folders; empty: the prompts that come with Canopy
  std::vector<uint32_t> prompt_tokens;
  std::string policy = "measured";
  std::string forced;
  uint32_t limit = 0;  // prompts of each category; 0: all
  uint32_t max_tokens = 128;
  uint32_t repeats = 3;
  std::string json, csv, markdown;  // files, "-" for standard output; empty: none
};

void add_modes_options(CLI::App& command, ModesOptions& options);

/// Whether the command line asks for this part. Throws UsageError for options of it without --modes or --forced.
bool asks_for_modes(const CLI::App& command, const ModesOptions& options);

/// Checks the files that a measurement is written to before measuring, so that an hour's is not lost to a mistyped
/// folder, and none replaces a file that is read. Throws UsageError and bad_input.
void check_bench_targets(const ModelChoice& model, const ModesOptions& options);

/// Returns the exit code. Throws UsageError for options that contradict each other, before anything is loaded.
int run_modes(const ModelChoice& model, const ModesOptions& options);

}  // namespace canopy::cli
