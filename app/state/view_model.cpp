#include "app/state/view_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/state/chat_update.h"
#include "app/state/context_use.h"
#include "app/state/model_update.h"
#include "app/state/part_commands.h"
#include "app/state/token_counts.h"

namespace canopy::app {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

bool is_current(const ViewModel& view, uint64_t reply_id) {
  return view.busy() && reply_id == view.reply_id;
}

/// Updates progress and remaining seconds. The first event is the starting point of the estimate; the later ones give
/// the speed.
void on_prefill(ViewModel& view, const PrefillProgress& e) {
  const bool first = view.prompt.total == 0;
  if (first) view.prompt_since_ms = view.chat.now_ms;
  const uint32_t before = first ? e.done : view.prompt_began_at;
  if (first) view.prompt_began_at = e.done;
  const double seconds = static_cast<double>(view.chat.now_ms - view.prompt_since_ms) / 1000;
  const double left = e.done > before ? seconds * (e.total - e.done) / (e.done - before) : -1;
  view.prompt = {"Reading prompt", e.done, e.total, false, left};
}

void on_failure(ViewModel& view, const Failure& e) {
  const bool of_reply = e.reply_id != 0;
  const bool of_load = !of_reply && view.model_state == ModelState::loading;
  const bool gone = e.kind == ErrorKind::device_lost;  // ends whatever the engine was doing
  if (of_reply && e.reply_id != view.reply_id && !gone) return;
  if (of_load && ends_superseded_load(view)) return;
  Card card{0, false, e.title, e.detail, Card::Action::none};
  if (of_reply) {
    if (view.busy()) end_reply(view, FinishReason::failed);
    card.action = gone ? Card::Action::load_again : Card::Action::run_again;
  } else if (of_load) {
    view.model_state = view.idle.opened ? ModelState::released : view.model ? ModelState::ready : ModelState::none;
    view.loading = {};
    card.action = e.would_fit_quantized ? Card::Action::load_quantized : Card::Action::choose_model;
  }
  if (gone) {
    // Without its device the model is gone. Say so now, not when the next question fails.
    if (view.busy()) end_reply(view, FinishReason::failed);
    view.model_state = ModelState::none;
    view.what_if.densifying = false;
    view.model.reset();
    view.idle.opened.reset();
    view.context_used = 0;
    card.action = Card::Action::load_again;
  }
  if (of_reply && e.prompt_tokens > 0) {
    if (view.model) view.context_used = std::min(e.prompt_tokens, view.model->context);
    return say_context_is_full(view, e.prompt_tokens);
  }
  if (e.kind != ErrorKind::cancelled) add_card(view, std::move(card));
  if (of_load) give_up_held(view);
}

void set_sampling(ViewModel& view, const SamplingSettings& wanted, bool restart) {
  auto within = [](float value, float low, float high, float otherwise) {
    return std::isfinite(value) ? std::clamp(value, low, high) : otherwise;
  };
  const SamplingSettings usual = chat_sampling();
  if (restart) view.replies_drawn = 0;
  view.sampling = wanted;
  SamplingSettings& s = view.sampling;
  s.temperature = within(s.temperature, 0, kMaxTemperature, usual.temperature);
  s.top_p = within(s.top_p, kMinTopP, 1, usual.top_p);
  s.min_p = within(s.min_p, 0, kMaxMinP, usual.min_p);
  s.repetition_penalty = within(s.repetition_penalty, kMinPenalty, kMaxPenalty, usual.repetition_penalty);
  s.seed = std::min<uint64_t>(s.seed, kMaxSeed);
}

/// Asks for the rounds of all replies and announces them to the log. The replies of a check are left out, as they are
/// shown nowhere.
Effects ask_for_rounds(ViewModel& view, Effects effects) {
  for (Command& command : effects.engine) {
    auto* generate = std::get_if<Generate>(&command);
    if (!generate || generate->reply_id == view.checks.check.reply_id) continue;
    generate->rounds = true;
    // The shown rounds may be those of another model, read with the chat.
    if (view.model && !view.rounds.live->fits(*view.model)) begin_live_log(view.rounds, &*view.model);
    view.rounds.live->expect(*generate, view.messages.back().id);
  }
  return effects;
}

/// A command of the user comes first: puts a StopReply before it if a check is running.
Effects before_check(ViewModel& view, Effects effects) {
  const bool of_check = effects.engine.size() == 1 && std::holds_alternative<Generate>(effects.engine.front()) &&
                        std::get<Generate>(effects.engine.front()).reply_id == view.checks.check.reply_id;
  if (effects.engine.empty() || of_check || !give_way(view.checks)) return effects;
  std::vector<Command> commands;
  commands.emplace_back(StopReply{});
  for (Command& each : effects.engine) commands.push_back(std::move(each));
  effects.engine = std::move(commands);
  return effects;
}

/// Whether a command is about the user's own chat, so that a shown trace is closed first.
bool leaves_replay(const UiCommand& command) {
  if (std::holds_alternative<SendMessage>(command) || std::holds_alternative<NewChat>(command) ||
      std::holds_alternative<RunAgain>(command))
    return true;
  const auto* chat = std::get_if<ChatCommand>(&command);
  return chat && (std::holds_alternative<OpenChat>(*chat) || std::holds_alternative<ImportChat>(*chat));
}

/// Whether a command chooses what to see, so that the start page goes. To open the model of the set-up does not, as it
/// is opened by itself at the start.
bool leaves_start(const ViewModel& view, const UiCommand& command) {
  if (leaves_replay(command)) return true;
  if (const auto* open = std::get_if<OpenModel>(&command)) return open->path != view.default_model;
  const auto* rounds = std::get_if<RoundsCommand>(&command);
  return rounds && (std::holds_alternative<WatchDemo>(*rounds) || std::holds_alternative<OpenTrace>(*rounds));
}

/// Whether a command shows rounds or a chat, so that the pages of comparisons go.
bool leaves_page(const UiCommand& command) {
  if (leaves_replay(command)) return true;
  const auto* rounds = std::get_if<RoundsCommand>(&command);
  return rounds && (std::holds_alternative<WatchDemo>(*rounds) || std::holds_alternative<OpenTrace>(*rounds));
}

}  // namespace

const Message* ViewModel::last_reply() const {
  return messages.empty() || messages.back().role != Role::assistant ? nullptr : &messages.back();
}

void update(ViewModel& view, const Event& event) {
  note_work(view);
  if (update(view.comparison, event)) return;
  update(view.rounds, event);
  update(view.models, event);
  update(view.calibration, event);
  update(view.report, event);
  update(view.checks, event);
  if (update(view.verify, event)) tell_verified(view);
  note_ar(view, event);
  if (const std::string problem = update(view.recording, event); !problem.empty())
    warn(view, "The recording has stopped", problem);
  std::visit(Overloaded{
                 [&](const LoadProgress& e) { on_load_progress(view, e); },
                 [&](const ModelReady& e) { on_model_ready(view, e); },
                 [&](const PrefillProgress& e) {
                   if (is_current(view, e.reply_id)) on_prefill(view, e);
                 },
                 [&](const ReplyStarted& e) {
                   if (is_current(view, e.reply_id)) on_started(view, e);
                 },
                 [&](const TextDelta& e) {
                   if (is_current(view, e.reply_id)) on_text(view, e);
                 },
                 [&](const RoundFinished& e) {
                   if (is_current(view, e.reply_id)) on_round(view, e);
                 },
                 [&](const ReplyFinished& e) {
                   if (is_current(view, e.reply_id)) on_finished(view, e);
                 },
                 [&](const Failure& e) { on_failure(view, e); },
                 [&](const TokensCounted& e) { take_count(view, e); },
                 [&](const ModelReleased& e) { on_released(view, e); },
                 [&](const DensifyProgress& e) {
                   // A recording that ends may draft without having been asked here.
                   view.what_if.densifying = true;
                   view.what_if.dense_progress = e;
                 },
                 [&](const Recording& e) {
                   if (!e.active) view.what_if.densifying = false;
                 },
                 [&](const TraceDensified& e) { on_densified(view, e); },
                 // All other events are for other parts of the state.
                 [&](const auto&) {},
             },
             event);
}

static Effects apply(ViewModel& view, const UiCommand& command) {
  return ask_for_rounds(
      view,
      std::visit(Overloaded{
                     [&](const SendMessage& c) { return send_message(view, c.text); },
                     [&](const StopWriting&) { return stop_reply(view); },
                     [&](const NewChat&) { return new_chat(view); },
                     [&](const RunAgain&) { return answer_last_again(view); },
                     [&](const OpenModel& c) { return open_model(view, c.path); },
                     [&](const LoadQuantized&) {
                       // Quantize from now on, also after a change of device.
                       view.quantize = QuantizeOnLoad::automatic;
                       return open_model(view, view.model_path);
                     },
                     [&](const BrowseModel&) {
                       view.path_box_shown = !view.file_dialog_available;
                       return Effects{{}, view.file_dialog_available, {}};
                     },
                     [&](const CancelLoading&) {
                       return view.model_state == ModelState::loading ? Effects{{CancelLoad{}}, false, {}} : Effects{};
                     },
                     [&](const ChooseDevice& c) { return choose_device(view, c.selector); },
                     [&](const DismissCard& c) {
                       std::erase_if(view.cards, [&](const Card& card) { return card.id == c.id; });
                       return Effects{};
                     },
                     [&](const SetTheme& c) { return view.theme = c.theme, Effects{}; },
                     [&](const SetScale& c) {
                       if (std::isfinite(c.scale)) view.user_scale = std::clamp(c.scale, kMinScale, kMaxScale);
                       return Effects{};
                     },
                     [&](const SetMaxTokens& c) {
                       view.max_tokens = std::clamp(c.tokens, 1u, kMostMaxTokens);
                       return Effects{};
                     },
                     [&](const SetSampling& c) { return set_sampling(view, c.sampling, c.restart), Effects{}; },
                     [&](const SetDrafting& c) { return view.drafting = c.mode, Effects{}; },
                     [&](const ShowHelp& c) { return view.help_shown = c.shown, Effects{}; },
                     [&](const CopyText& c) {
                       return Effects{{}, false, c.text};
                     },
                     [&](const ShowPathBox& c) { return view.path_box_shown = c.shown, Effects{}; },
                     [&](const ChatCommand& c) { return update_chat(view, c); },
                     [&](const CalibrationCommand& c) { return on_calibration_command(view, c); },
                     [&](const RoundsCommand& c) { return on_rounds_command(view, c); },
                     [&](const ShellCommand& c) { return on_shell_command(view, c); },
                     [&](const ModelsCommand& c) { return on_models_command(view, c); },
                     [&](const RecordingCommand& c) { return on_recording_command(view, c); },
                     [&](const ReportCommand& c) { return on_report_command(view, c); },
                     [&](const ShareCommand& c) { return on_share_command(view, c); },
                     [&](const VerifyCommand& c) { return on_verify_command(view, c); },
                     [&](const WhatIfCommand& c) { return on_what_if_command(view, c); },
                     [&](const ComparisonCommand& c) { return on_comparison_command(view, c); },
                     [&](const CheckCommand& c) {
                       return Effects{update_check(view, c), false, {}};
                     },
                 },
                 command));
}

void follow_playback(ViewModel& view) {
  if (view.replaying())
    view.replay.show(view.rounds.playback.shown, view.rounds.playback.told());
  else if (!view.replay.conversation().empty())
    view.replay = {};
}

Effects update(ViewModel& view, const UiCommand& command) {
  note_work(view);
  if (view.replaying() && leaves_replay(command)) update(view.rounds, CloseTrace{});
  if (leaves_start(view, command)) view.shell.welcome = false;
  if (leaves_page(command)) view.shell.page = WindowPage::rounds;
  Effects effects = apply(view, command);
  follow_playback(view);
  hold_replies(view, effects.engine);
  return before_check(view, std::move(effects));
}

}  // namespace canopy::app
