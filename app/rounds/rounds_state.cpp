#include "app/rounds/rounds_state.h"

#include <utility>

namespace canopy::app {
namespace {

template <class... F>
struct Cases : F... {
  using F::operator()...;
};
template <class... F>
Cases(F...) -> Cases<F...>;

/// Call when another log is shown: node numbers belong to the log they were taken from.
void forget_nodes(RoundsState& rounds) {
  rounds.hovered.reset();
  rounds.selected.reset();
}

void select(RoundsState& rounds, const std::optional<NodeRef>& node) {
  rounds.selected = node;
  if (node && node->round < rounds.log->rounds() && node->round != rounds.playback.shown)
    show(rounds.playback, *rounds.log, node->round);
}

void close_trace(RoundsState& rounds) {
  if (rounds.trace_path.empty()) return;
  forget_nodes(rounds);
  rounds.trace_path.clear();
  rounds.log = rounds.live;
  follow(rounds.playback, *rounds.log);
}

}  // namespace

void update(RoundsState& rounds, const Event& event) {
  const auto* ready = std::get_if<ModelReady>(&event);
  if (ready && !rounds.live->fits(*ready)) {
    // Token ids of another model have other meanings than those of the old rounds. Those of an earlier day stay until
    // the new model writes something.
    if (rounds.live->only_restored()) return;
    begin_live_log(rounds, nullptr);
  }
  rounds.live->take(event);
  advance(rounds, 0);
}

void update(RoundsState& rounds, const RoundsCommand& command) {
  Playback& playback = rounds.playback;
  const RoundLog& log = *rounds.log;
  std::visit(Cases{
                 [&](const TogglePause&) { toggle_pause(playback, log); },
                 [&](const FollowRounds&) { follow(playback, log); },
                 [&](const StepRound& c) { step(playback, log, c.by); },
                 [&](const ShowRound& c) { show(playback, log, c.round); },
                 [&](const SetSpeed& c) { set_speed(playback, c.speed); },
                 [&](const SetSlowMotion& c) { set_slow_motion(playback, log, c.on, rounds.reduced_motion); },
                 [&](const SetReducedMotion& c) { rounds.reduced_motion = c.on; },
                 [&](const HoverNode& c) { rounds.hovered = c.node; },
                 [&](const SelectNode& c) { select(rounds, c.node); },
                 [&](const OpenTrace&) {},
                 [&](const WatchDemo&) {},
                 [&](const CloseTrace&) { close_trace(rounds); },
             },
             command);
}

bool is_live(const RoundsState& rounds) {
  const std::vector<ReplySummary>& replies = rounds.log->replies();
  return rounds.log->is_live() && rounds.playback.state == PlayState::following && !replies.empty() &&
         !replies.back().reason;
}

void advance(RoundsState& rounds, double milliseconds) {
  advance(rounds.playback, *rounds.log, milliseconds, rounds.reduced_motion);
}

bool moves(const RoundsState& rounds) {
  return moves(rounds.playback, *rounds.log, rounds.reduced_motion);
}

void begin_live_log(RoundsState& rounds, const ModelReady* model) {
  const bool shown = rounds.log == rounds.live;
  rounds.live = std::make_shared<LiveLog>();
  if (model) rounds.live->take(*model);
  if (!shown) return;
  forget_nodes(rounds);
  rounds.log = rounds.live;
  rounds.playback.shown = 0;
  follow(rounds.playback, *rounds.log);
}

void show_log(RoundsState& rounds, std::shared_ptr<RoundLog> log, const std::string& path) {
  forget_nodes(rounds);
  rounds.log = std::move(log);
  rounds.trace_path = path;
  rounds.playback.slow_motion = false;
  show(rounds.playback, *rounds.log, 0);
}

}  // namespace canopy::app
