#pragma once
// The tour: seven steps over a recorded run, each with its pass and its moment. Its words are in app/shell/tour_text.h.

#include <cstdint>

#include "app/rounds/round_log.h"
#include "app/state/shell_state.h"

namespace canopy::app {

struct ViewModel;

/// The round of a log that shows best why a tree is drafted: of those where the accepted path leaves the drafter's
/// favourite, one with words for both and many tokens; of equals the first. Round 0 where there is none.
size_t telling_round(const RoundLog& log);

/// Shows what the present step of the tour speaks of. Call after the tour was begun, and after each step.
void show_tour_step(ViewModel& view);

/// Applies a command of the tour. Returns whether the demo must be opened first; show_tour_step() comes after that.
bool update_tour(ViewModel& view, const ShowTour& command);
void update_tour(ViewModel& view, const StepTour& command);

}  // namespace canopy::app
