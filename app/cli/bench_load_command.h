#pragma once
// The part of `canopy-cli bench` that measures loading: --load.

#include <cstdint>
#include <string>

#include "app/cli/model_options.h"

namespace canopy::cli {

/// Returns the exit code. `json`: a file, "-" for standard output, empty for none. Throws UsageError for a choice that
/// is made only while loading for use, --quantize auto.
int run_load_bench(const ModelChoice& model, uint32_t repeats, const std::string& json);

}  // namespace canopy::cli
