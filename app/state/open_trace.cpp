#include "app/state/open_trace.h"

#include <memory>

#include "app/rounds/trace_log.h"
#include "app/state/tour.h"
#include "app/state/view_model.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace canopy::app {
namespace {

constexpr double kDemoRoundMs = 600;

constexpr Demo kDemos[] = {
    {"Code", "A Python class, drafted in trees", "demos/code.canopytrace"},
    {"Prose", "A short explanation, drafted in trees", "demos/prose.canopytrace"},
};

}  // namespace

std::span<const Demo> demos() {
  return kDemos;
}

void open_trace(ViewModel& view, const std::string& path) {
  try {
    const auto log = std::make_shared<TraceLog>(path);
    show_log(view.rounds, log, path);
    view.replay = ReplayChat(*log, view.last_id);
    follow_playback(view);
    if (!log->reader().notice().empty()) warn(view, "The trace is not whole", log->reader().notice());
  } catch (const Error& e) {
    fail(view, "The trace could not be opened", e.what());
  }
}

void watch_demo(ViewModel& view, size_t demo) {
  if (demo >= demos().size()) return;
  const auto path = find_asset(demos()[demo].asset);
  if (!path) {
    return fail(view, "The demo is not there",
                std::string("The file assets/") + demos()[demo].asset + " of Canopy's own folder is missing.");
  }
  open_trace(view, path->string());
  if (view.rounds.trace_path != path->string()) return;
  // Play at about kDemoRoundMs for each round, however fast or slow the recording machine was.
  Playback& playback = view.rounds.playback;
  const RoundLog& log = *view.rounds.log;
  set_speed(playback, log.statistics().ms().total() / static_cast<double>(log.rounds()) / kDemoRoundMs);
  toggle_pause(playback, log);
  show_tour_step(view);  // where the demo was opened for it
}

}  // namespace canopy::app
