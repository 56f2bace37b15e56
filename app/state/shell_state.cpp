#include "app/state/shell_state.h"

#include <algorithm>

namespace canopy::app {
namespace {

void apply(ShellState& state, const ShowPalette& c) {
  state.palette_shown = c.shown;
}

void apply(ShellState& state, const ShowPanel& c) {
  if (!c.shown) {
    state.closed.insert(c.name);
    return;
  }
  state.layout = WindowLayout::lab;
  state.page = WindowPage::rounds;
  state.closed.erase(c.name);
  state.raised = c.name;
  ++state.raises;
}

void apply(ShellState& state, const SetLayout& c) {
  state.layout = c.layout;
  state.page = WindowPage::rounds;
}

void apply(ShellState& state, const ShowPage& c) {
  state.page = c.page;
}

// The tour also moves the replay: update_tour() carries these out.
void apply(ShellState&, const ShowTour&) {}
void apply(ShellState&, const StepTour&) {}

void apply(ShellState& state, const ShowRegions& c) {
  state.regions_shown = c.shown;
}

void apply(ShellState& state, const LeaveStart&) {
  state.welcome = false;
}

void apply(ShellState& state, const ResetLayout&) {
  state.closed.clear();
  ++state.layout_resets;
}

void apply(ShellState& state, const SetTreeBudget& c) {
  state.tree_budget = std::clamp(c.nodes, 1u, kLargestTreeBudget);
}

void apply(ShellState& state, const SetAsIfOn& c) {
  state.as_if_on = c.device;
}

}  // namespace

std::string as_if_device(const ShellState& state) {
  return state.as_if_on.empty() ? "rtx4090" : state.as_if_on;
}

void update(ShellState& state, const ShellCommand& command) {
  std::visit([&](const auto& c) { apply(state, c); }, command);
}

}  // namespace canopy::app
