#pragma once
// What Compare and Sweep have in common: their names to switch between, and the measurement under way.

#include <span>
#include <string>

#include <imgui.h>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Draws "Compare | Sweep" at a point. Returns the x behind it.
float draw_page_names(const ViewModel& view, CommandSink& sink, ImVec2 pos);

/// Draws the buttons at the right end of the header, whose middle is at y: Start, or progress with Pause and Cancel;
/// and what closes the page. `start` is what the first button does, `start_words` what it says; it can be pressed where
/// `obstacle` is empty. Returns the x before them.
float draw_measuring(const ViewModel& view, CommandSink& sink, SweepKind kind, const ComparisonCommand& start,
                     const char* start_words, const std::string& obstacle, float left, float right, float y);

inline constexpr uint32_t kRepeatSteps[] = {1, 2, 3, 5, 7, 10, 20, 50};
inline constexpr uint32_t kTokenSteps[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

/// A stepper for a whole number: minus, figure, plus. Returns the new value.
uint32_t stepper(const char* id, const char* caption, uint32_t value, std::span<const uint32_t> steps, bool enabled);
/// The width that it takes.
float stepper_width(const char* caption, const std::string& widest);

/// Why nothing can be measured now, as a sentence; empty where it can.
std::string measuring_obstacle(const ViewModel& view, bool needs_model);

}  // namespace canopy::app
