#pragma once

#include <string>

#include "app/state/view_model.h"

namespace canopy::app {

/// "62 / 98 MB, 2 s left" for bytes, "3 of 9" for steps, empty when the total is unknown.
std::string progress_figures(const Progress& progress);

/// What the engine is doing, in words for the status bar.
std::string state_words(const ViewModel& view);

}  // namespace canopy::app
