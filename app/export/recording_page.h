#pragma once
// A recording as one web page: the tree, the text, time with slow motion, and statistics. It needs no network, no
// program and no other file.

#include <string>

#include "app/export/shared_run.h"

namespace canopy::app {

/// Rounds of the largest page.
inline constexpr size_t kMostPageRounds = 2000;

/// The page of these rounds of a run. Throws cancelled, and bad_input where the log no longer has one of their trees.
std::string recording_page(const SharedRun& run, const RoundRange& range, const ShareCallbacks& callbacks = {});

/// Model, drafter and device of a run: "SmolLM2-135M-Instruct Q4_1 with smollm2-135m-dflash on llvmpipe".
std::string run_title(const SharedRun& run);

}  // namespace canopy::app
