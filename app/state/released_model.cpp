#include "app/state/released_model.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "app/base/figures.h"
#include "app/state/chat_update.h"
#include "app/state/view_model.h"

namespace canopy::app {
namespace {

constexpr int64_t kMinuteMs = 60'000;

bool is_busy(const ViewModel& view) {
  return view.busy() || view.calibration.busy() || view.report.busy() || view.comparison.busy() ||
         view.checks.check.running() || view.recording.running();
}

/// The load or the reply of the question that waits, as far as it can be asked for now.
std::optional<Command> next_for_held(ViewModel& view) {
  IdleState& idle = view.idle;
  if (view.model_state == ModelState::loading) return std::nullopt;
  if (view.model_state != ModelState::released) return *std::exchange(idle.held, std::nullopt);
  if (!idle.opened) return std::nullopt;
  begin_load(view, idle.opened->path);
  return *idle.opened;
}

}  // namespace

void note_work(ViewModel& view) {
  view.idle.since_ms = view.chat.now_ms;
}

std::optional<int64_t> release_due_ms(const ViewModel& view) {
  const uint32_t minutes = view.models.idle_minutes;
  if (minutes == 0 || view.model_state != ModelState::ready || is_busy(view)) return std::nullopt;
  return view.idle.since_ms + minutes * kMinuteMs;
}

std::vector<Command> take_due_commands(ViewModel& view) {
  if (view.idle.held) {
    const std::optional<Command> next = next_for_held(view);
    return next ? std::vector<Command>{*next} : std::vector<Command>{};
  }
  // A clock that was set back would else put the release off by as much.
  view.idle.since_ms = std::min(view.idle.since_ms, view.chat.now_ms);
  const std::optional<int64_t> due = release_due_ms(view);
  if (!due || view.chat.now_ms < *due) return {};
  // From now on, not from the engine's answer: what is asked until then comes after the release.
  view.model_state = ModelState::released;
  view.context_used = 0;
  view.idle.after = view.models.idle_minutes;
  view.idle.opened.reset();
  return {ReleaseModel{}};
}

void hold_replies(ViewModel& view, std::vector<Command>& commands) {
  if (view.model_state != ModelState::released) return;
  for (Command& each : commands)
    if (auto* reply = std::get_if<Generate>(&each)) view.idle.held = std::move(*reply);
  std::erase_if(commands, [](const Command& each) { return std::holds_alternative<Generate>(each); });
}

void give_up_held(ViewModel& view) {
  if (!view.idle.held) return;
  view.idle.held.reset();
  end_reply(view, FinishReason::cancelled);
  view.cards.push_back({++view.last_id, true, "Your question was not answered",
                        "The model was not loaded. The question stays in the chat, and you can ask it again.",
                        Card::Action::run_again, false});
}

void on_released(ViewModel& view, const ModelReleased& event) {
  const bool loading = view.model_state == ModelState::loading;
  if (event.opened.path.empty()) {
    view.model.reset();
    if (!loading) view.model_state = ModelState::none;
    return;
  }
  view.idle.opened = event.opened;
  if (!loading) view.model_state = ModelState::released;
}

std::string released_words(const ViewModel& view) {
  return "Released after " + counted(view.idle.after, "idle minute", "idle minutes") +
         "; your next message loads it again";
}

}  // namespace canopy::app
