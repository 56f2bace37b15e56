#include "app/state/rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace canopy::app {
namespace {

void show_whole(Playback& playback) {
  playback.phase = Phase::commit;
  playback.progress = 1;
  playback.elapsed_ms = 0;
}

void begin_phase(Playback& playback, Phase phase) {
  playback.phase = phase;
  playback.progress = 0;
  playback.elapsed_ms = 0;
}

double phase_ms_of(const RoundLog& log, size_t round, Phase phase) {
  return phase_ms(phase, log.summary(round).accepted);
}

void end_phase(Playback& playback, const RoundLog& log, Phase phase) {
  playback.phase = phase;
  playback.progress = 1;
  playback.elapsed_ms = phase_ms_of(log, playback.shown, phase);
}

Phase next(Phase phase) {
  return static_cast<Phase>(static_cast<uint8_t>(phase) + 1);
}

Phase previous(Phase phase) {
  return static_cast<Phase>(static_cast<uint8_t>(phase) - 1);
}

size_t last_round(const RoundLog& log) {
  return log.rounds() - 1;
}

Phase first_phase_of(const RoundLog& log, size_t round) {
  return first_phase(log.summary(round).shape, log.summary(round).sources);
}

void arrive(Playback& playback, const RoundLog& log) {
  if (!log.is_live()) playback.state = PlayState::paused;
  playback.elapsed_ms = playback.slow_motion ? phase_ms_of(log, playback.shown, Phase::commit) : 0;
}

/// Plays whole rounds: each is shown for as long as the engine took for the round after it.
void advance_rounds(Playback& playback, const RoundLog& log, double ms) {
  playback.elapsed_ms += ms;
  while (playback.shown < last_round(log)) {
    const double stay = log.summary(playback.shown + 1).ms.total();
    if (playback.elapsed_ms < stay) return;
    playback.elapsed_ms -= stay;
    ++playback.shown;
  }
  arrive(playback, log);
}

void advance_phases(Playback& playback, const RoundLog& log, double ms) {
  playback.elapsed_ms += ms;
  for (double whole; playback.elapsed_ms >= (whole = phase_ms_of(log, playback.shown, playback.phase));) {
    const double rest = playback.elapsed_ms - whole;
    if (playback.phase != Phase::commit) {
      begin_phase(playback, next(playback.phase));
    } else if (playback.shown < last_round(log)) {
      begin_phase(playback, first_phase_of(log, ++playback.shown));
    } else {
      playback.progress = 1;
      arrive(playback, log);
      return;
    }
    playback.elapsed_ms = rest;
  }
  playback.progress = static_cast<float>(playback.elapsed_ms / phase_ms_of(log, playback.shown, playback.phase));
}

bool step_phase(Playback& playback, const RoundLog& log, bool forward) {
  const Phase first = first_phase_of(log, playback.shown);
  if (forward) {
    if (playback.progress < 1) {
      end_phase(playback, log, playback.phase);
    } else if (playback.phase != Phase::commit) {
      end_phase(playback, log, next(playback.phase));
    } else if (playback.shown < last_round(log)) {
      end_phase(playback, log, first_phase_of(log, ++playback.shown));
    } else {
      return false;
    }
    return true;
  }
  if (playback.phase != first) {
    end_phase(playback, log, previous(playback.phase));
  } else if (playback.shown > 0) {
    --playback.shown;
    end_phase(playback, log, Phase::commit);
  } else {
    return false;
  }
  return true;
}

}  // namespace

double phase_ms(Phase phase, uint32_t accepted) {
  switch (phase) {
    case Phase::fill: return 700;
    case Phase::insert: return 900;
    case Phase::verify: return 800;
    case Phase::walk: return std::min(1500.0, 250.0 * (accepted + 1.0));
    case Phase::bonus: return 600;
    case Phase::commit: return 700;
  }
  return 700;
}

Phase first_phase(DecodeMode shape, DraftSources sources) {
  if (shape == DecodeMode::ar) return Phase::verify;
  return sources == kFromSuffix ? Phase::insert : Phase::fill;
}

void advance(Playback& playback, const RoundLog& log, double milliseconds, bool reduced_motion) {
  if (log.rounds() == 0) return;
  playback.shown = std::min(playback.shown, last_round(log));
  if (playback.state == PlayState::following) {
    playback.shown = last_round(log);
    show_whole(playback);
  }
  if (playback.state != PlayState::playing || !(milliseconds > 0)) return;
  const double ms = milliseconds * playback.speed;
  if (!playback.slow_motion) {
    advance_rounds(playback, log, ms);
  } else if (!reduced_motion) {
    advance_phases(playback, log, ms);
  }
}

bool moves(const Playback& playback, const RoundLog& log, bool reduced_motion) {
  if (playback.state != PlayState::playing || log.rounds() == 0) return false;
  if (playback.slow_motion && reduced_motion) return false;
  const bool more = playback.shown < last_round(log);
  return more || !log.is_live() || (playback.slow_motion && (playback.phase != Phase::commit || playback.progress < 1));
}

void toggle_pause(Playback& playback, const RoundLog& log) {
  if (playback.state != PlayState::paused) {
    playback.state = PlayState::paused;
    return;
  }
  if (log.rounds() == 0) return follow(playback, log);
  const bool whole = playback.phase == Phase::commit && playback.progress >= 1;
  const bool at_end = playback.shown >= last_round(log) && whole;
  if (at_end && log.is_live()) return follow(playback, log);
  playback.state = PlayState::playing;
  if (at_end) playback.shown = 0;
  if (!playback.slow_motion) return show_whole(playback);
  if (whole) begin_phase(playback, first_phase_of(log, playback.shown));
}

void follow(Playback& playback, const RoundLog& log) {
  playback.state = PlayState::following;
  playback.slow_motion = false;
  show_whole(playback);
  if (log.rounds() > 0) playback.shown = last_round(log);
}

void step(Playback& playback, const RoundLog& log, int by) {
  playback.state = PlayState::paused;
  if (log.rounds() == 0) return;
  if (playback.slow_motion) {
    for (int64_t left = std::abs(int64_t{by}); left > 0 && step_phase(playback, log, by > 0); --left) {
    }
    return;
  }
  const auto wanted = static_cast<int64_t>(playback.shown) + by;
  show(playback, log, static_cast<size_t>(std::max<int64_t>(wanted, 0)));
}

void show(Playback& playback, const RoundLog& log, size_t round) {
  playback.state = PlayState::paused;
  show_whole(playback);
  if (log.rounds() > 0) playback.shown = std::min(round, last_round(log));
}

void set_speed(Playback& playback, double speed) {
  if (!std::isfinite(speed)) return;
  playback.speed = std::clamp(speed, kSlowest, kFastest);
  if (playback.state == PlayState::following) playback.state = PlayState::playing;
}

void show_phase(Playback& playback, const RoundLog& log, Phase phase) {
  playback.state = PlayState::paused;
  playback.slow_motion = true;
  if (log.rounds() > 0) end_phase(playback, log, std::max(phase, first_phase_of(log, playback.shown)));
}

void set_slow_motion(Playback& playback, const RoundLog& log, bool on, bool reduced_motion) {
  if (playback.slow_motion == on) return;
  playback.slow_motion = on;
  show_whole(playback);
  if (!on) return;
  playback.state = reduced_motion ? PlayState::paused : PlayState::playing;
  if (log.rounds() == 0) return;
  const Phase first = first_phase_of(log, playback.shown);
  reduced_motion ? end_phase(playback, log, first) : begin_phase(playback, first);
}

namespace {

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
  if (!rounds.trace_path.empty()) show_live(rounds, rounds.live);
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

void show_branch(RoundsState& rounds, size_t round) {
  rounds.branch_end.reset();
  forget_nodes(rounds);
  follow(rounds.playback, *rounds.log);
  if (round + 1 >= rounds.log->rounds()) return;
  show(rounds.playback, *rounds.log, round);
  rounds.branch_end = round;
}

void leave_branch(RoundsState& rounds) {
  const auto end = std::exchange(rounds.branch_end, std::nullopt);
  const Playback& playback = rounds.playback;
  if (rounds.log == rounds.live && end == playback.shown && playback.state == PlayState::paused)
    follow(rounds.playback, *rounds.log);
}

static bool is_being_written(const RoundLog& log) {
  return log.is_live() && !log.replies().empty() && !log.replies().back().reason;
}

bool RoundsState::behind_live() const {
  return is_being_written(*log) && playback.state != PlayState::following && playback.shown + 1 < log->rounds() &&
         (log != live || playback.shown != branch_end);
}

bool is_live(const RoundsState& rounds) {
  return is_being_written(*rounds.log) && rounds.playback.state == PlayState::following;
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
  rounds.branch_end.reset();
  if (model) rounds.live->take(*model);
  if (!shown) return;
  forget_nodes(rounds);
  rounds.log = rounds.live;
  rounds.playback.shown = 0;
  follow(rounds.playback, *rounds.log);
}

void show_live(RoundsState& rounds, std::shared_ptr<LiveLog> log) {
  forget_nodes(rounds);
  rounds.trace_path.clear();
  rounds.log = std::move(log);
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
