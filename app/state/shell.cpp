#include "app/state/shell.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "app/state/view_model.h"

namespace canopy::app {
namespace {

void show_panel(ShellState& state, const ShowPanel& c) {
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

}  // namespace

std::string as_if_device(const ShellState& state) {
  return state.as_if_on.empty() ? "rtx4090" : state.as_if_on;
}

bool chat_list_shown(const ShellState& state, float width) {
  return width < kRoomForChatList ? state.chat_list_over : state.chat_list.value_or(state.chat_list_usual);
}

float chat_width(float set, float room) {
  const float usual = std::min(std::max(room * kUsualChatShare, kUsualChatWidth), room - kUsualTreeWidth);
  const float most = std::max(kLeastChatWidth, room - kLeastTreeWidth);
  return std::floor(std::clamp(set > 0 ? set : usual, kLeastChatWidth, most));
}

namespace {

void show_chat_list(ShellState& state, const ShowChatList& c) {
  if (c.over)
    state.chat_list_over = c.shown;
  else
    state.chat_list = c.shown;
  if (c.shown && c.search) ++state.chat_list_searches;
}

}  // namespace

void update(ShellState& state, const ShellCommand& command) {
  std::visit(Cases{
                 [&](const ShowPalette& c) { state.palette_shown = c.shown; },
                 [&](const PressControl& c) {
                   state.pressed = c.name;
                   ++state.presses;
                 },
                 [&](const ShowPanel& c) { show_panel(state, c); },
                 [&](const MoveFocus& c) { state.focus_moves += c.by; },
                 [&](const SetLayout& c) {
                   state.layout = c.layout;
                   state.page = WindowPage::rounds;
                 },
                 [&](const ShowPage& c) { state.page = c.page; },
                 // The tour also moves the replay: update_tour() carries these out.
                 [&](const ShowTour&) {},
                 [&](const StepTour&) {},
                 [&](const ShowRegions& c) { state.regions_shown = c.shown; },
                 [&](const LeaveStart&) { state.welcome = false; },
                 [&](const ResetLayout&) {
                   state.closed.clear();
                   state.chat_width = 0;
                   ++state.layout_resets;
                 },
                 [&](const SetTreeBudget& c) { state.tree_budget = std::clamp(c.nodes, 1u, kLargestTreeBudget); },
                 [&](const SetAsIfOn& c) { state.as_if_on = c.device; },
                 [&](const ShowChatList& c) { show_chat_list(state, c); },
                 [&](const SetChatWidth& c) {
                   if (std::isfinite(c.width)) state.chat_width = std::clamp(c.width, 0.0f, float{kMaxSide});
                 },
             },
             command);
}

namespace {

/// The moment of each step; commit: the whole pass.
constexpr std::array<Phase, kTourSteps> kMoments = {Phase::commit, Phase::insert, Phase::verify, Phase::commit,
                                                    Phase::commit, Phase::commit, Phase::commit};

bool is_word(const RoundLog& log, uint32_t token) {
  const auto piece = log.piece(token);
  if (!piece) return false;
  return std::count_if(piece->bytes.begin(), piece->bytes.end(), [](unsigned char c) { return std::isalpha(c) != 0; }) >
         2;
}

/// How well a round shows why a tree is drafted: its tokens where the accepted path leaves the drafter's favourite, and
/// more where both are words; else 0.
uint32_t telling(const RoundLog& log, const RoundRecord& record) {
  constexpr uint32_t kWords = 4;
  for (const RoundNode& taken : record.nodes) {
    if (taken.state != NodeState::accepted || taken.node.rank == 0) continue;
    const auto favourite = std::find_if(record.nodes.begin(), record.nodes.end(), [&](const RoundNode& row) {
      return row.node.parent == taken.node.parent && row.node.rank == 0 && row.node.depth == taken.node.depth;
    });
    const bool words =
        favourite != record.nodes.end() && is_word(log, favourite->node.token) && is_word(log, taken.node.token);
    return static_cast<uint32_t>(record.emitted.size()) + (words ? kWords : 0);
  }
  return 0;
}

void end_tour(ViewModel& view) {
  TourState& tour = view.shell.tour;
  if (tour.opened_demo && view.replaying()) update(view.rounds, CloseTrace{});
  tour.shown = tour.opened_demo = false;
  set_slow_motion(view.rounds.playback, *view.rounds.log, false);
}

}  // namespace

size_t telling_round(const RoundLog& log) {
  size_t best = 0;
  uint32_t most = 0;
  for (size_t i = 0; i < log.rounds(); ++i) {
    const auto record = log.round(i);
    const uint32_t score = record ? telling(log, *record) : 0;
    if (score <= most) continue;
    best = i;
    most = score;
  }
  return best;
}

void show_tour_step(ViewModel& view) {
  RoundsState& rounds = view.rounds;
  if (!view.shell.tour.shown || rounds.log->rounds() == 0) return;
  show(rounds.playback, *rounds.log, telling_round(*rounds.log));
  const Phase moment = kMoments[std::min(view.shell.tour.step, kTourSteps - 1)];
  if (moment == Phase::commit)
    set_slow_motion(rounds.playback, *rounds.log, false);
  else
    show_phase(rounds.playback, *rounds.log, moment);
}

bool update_tour(ViewModel& view, const ShowTour& command) {
  TourState& tour = view.shell.tour;
  tour.seen = true;
  if (!command.shown) {
    if (tour.shown) end_tour(view);
    return false;
  }
  tour.shown = true;
  tour.step = std::min(tour.step, kTourSteps - 1);
  view.shell.layout = WindowLayout::watch;
  tour.opened_demo = !view.replaying();
  show_tour_step(view);
  return tour.opened_demo;
}

void update_tour(ViewModel& view, const StepTour& command) {
  TourState& tour = view.shell.tour;
  if (!tour.shown) return;
  if (command.by > 0 && tour.step + 1 >= kTourSteps) {
    tour.step = 0;
    return end_tour(view);
  }
  if (command.by < 0 && tour.step == 0) return;
  tour.step = command.by > 0 ? tour.step + 1 : tour.step - 1;
  show_tour_step(view);
}

}  // namespace canopy::app
