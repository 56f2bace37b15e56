#pragma once
// canopy-cli trace what-if: a recording with the costs of another device, and other widths, policies and depths.

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace canopy::cli {

void add_what_if(CLI::App& trace, Action& action);
/// canopy-cli trace densify: needs the model.
void add_densify(CLI::App& trace, Action& action);

}  // namespace canopy::cli
