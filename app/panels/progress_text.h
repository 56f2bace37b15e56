#pragma once

#include <string>

#include "app/view_model.h"

namespace canopy::app {

/// "43%" for bytes, "120 of 512" for steps, empty when the total is unknown.
std::string progress_figures(const Progress& progress);

/// What the engine is doing, in words for the status bar.
std::string state_words(const ViewModel& view);

}  // namespace canopy::app
