#include "app/run/share_files.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "app/rounds/trace_log.h"
#include "app/share/animation.h"
#include "app/share/live_run.h"
#include "app/share/recording_page.h"
#include "app/share/round_picture.h"

namespace canopy::app {
namespace {

constexpr PictureSize kShared = {1280, 720}, kMoving = {960, 540};

using ReadRun = std::function<SharedRun(const ShareCallbacks&)>;

/// A page of all rounds, or an animation of some from `round` on. The run may take a while to read, so it is asked for
/// on the thread.
ShareJob::Make make_run(ReadRun read, size_t round, ShareKind kind) {
  return [read = std::move(read), round, kind](const ShareCallbacks& callbacks) {
    const SharedRun run = read(callbacks);
    const size_t rounds = run.log->rounds();
    if (kind == ShareKind::page)
      return recording_page(run, round_range(rounds, 0, std::min(rounds, kMostPageRounds), kMostPageRounds), callbacks);
    // The last rounds, where there are not enough behind this one.
    const size_t first = std::min(round, rounds - std::min(rounds, kAnimatedRounds));
    const RoundRange range = round_range(rounds, first, std::min(kAnimatedRounds, rounds - first), kMostAnimatedRounds);
    return animated_svg(run, range, std::nullopt, kMoving, callbacks);
  };
}

}  // namespace

ShareJob::Make make_of(const ViewModel& view, ShareKind kind) {
  const RoundsState& rounds = view.rounds;
  const size_t round = rounds.playback.shown;
  const ThemeKind theme = view.theme;
  if (kind == ShareKind::png || kind == ShareKind::svg) {
    const auto card = std::make_shared<const RoundCard>(*rounds.log, round, kShared);
    if (kind == ShareKind::svg) return [card](const ShareCallbacks&) { return svg_of_card(*card, std::nullopt); };
    return [card, theme](const ShareCallbacks&) { return png_of_card(*card, theme, 2); };
  }
  if (!rounds.trace_path.empty())
    return make_run(
        [path = rounds.trace_path](const ShareCallbacks&) { return run_of(std::make_shared<const TraceLog>(path)); },
        round, kind);
  const auto live = std::make_shared<const LiveReply>(live_reply(*rounds.live, view.messages, round));
  return make_run([live](const ShareCallbacks& callbacks) { return read_run(*live, callbacks); }, live->shown, kind);
}

}  // namespace canopy::app
