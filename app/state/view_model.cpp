#include "app/state/view_model.h"

#include <algorithm>
#include <cmath>

#include "app/state/chat_update.h"
#include "app/state/text_link.h"
#include "app/state/words.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/format/model_paths.h"

namespace canopy::app {
namespace {

// How the model of the window changes: it is opened, loads, and is there; with its device, and with settings that take
// effect when it is loaded.

/// Call at the end of each load, which is one ModelReady or one Failure. True when that load was replaced by a newer
/// one.
bool ends_superseded_load(ViewModel& view) {
  if (view.superseded_loads == 0) return false;
  --view.superseded_loads;
  return true;
}

void on_load_progress(ViewModel& view, const LoadProgress& e) {
  if (view.model_state != ModelState::loading) return;
  view.loading = {e.stage, e.done, e.total, e.in_bytes, e.seconds_left};
}

void on_model_ready(ViewModel& view, const ModelReady& e) {
  view.model = e;
  view.idle.opened.reset();
  view.context_used = 0;
  if (ends_superseded_load(view)) return;
  view.model_state = ModelState::ready;
  view.loading = {};
  remember_model(view.models, view.model_path);
  for (const std::string& warning : e.warnings) add_card(view, {0, true, "The model works with a limit", warning, {}});
}

Effects open_model(ViewModel& view, const std::string& path) {
  if (path.empty()) return {};
  Effects effects = stop_reply(view);
  if (view.model_state == ModelState::loading) {
    effects.engine.emplace_back(CancelLoad{});
    ++view.superseded_loads;
  }
  begin_load(view, path);
  LoadModel load;
  load.path = path;
  load.device = view.device_selector;
  load.quantize = view.quantize;
  load.kv = view.kv;
  ask_for(view.models, load);
  effects.engine.push_back(std::move(load));
  return effects;
}

/// Loads the present model again, so that a changed setting takes effect. Does nothing without a model.
Effects load_again(ViewModel& view) {
  return view.model_path.empty() || view.model_state == ModelState::none ? Effects{}
                                                                         : open_model(view, view.model_path);
}

Effects choose_device(ViewModel& view, const std::string& selector) {
  view.device_selector = selector;
  const auto chosen = std::ranges::find(view.devices, selector, &DeviceChoice::selector);
  if (chosen != view.devices.end()) view.models.device = {selector, chosen->backend, chosen->name};
  Effects effects = load_again(view);
  if (view.shell.page == WindowPage::models) effects.hub.pairs = hub_here(view);
  return effects;
}

Effects on_models_command(ViewModel& view, const ModelsCommand& command) {
  if (std::holds_alternative<LookForModels>(command)) {
    Effects effects;
    effects.search = begin_search(view.models, view.model_path);
    effects.search->standard = view.default_model;
    return effects;
  }
  choose(view.models, command);
  if (std::holds_alternative<ShowEngineBox>(command)) return {};
  if (const auto* engine = std::get_if<OpenEngine>(&command)) {
    view.models.engine_box_shown = false;
    view.shell.welcome = false;
    if (view.shell.page == WindowPage::models) view.shell.page = WindowPage::rounds;
    return open_model(view, engine_address(engine->address));
  }
  return std::holds_alternative<ReleaseWhenIdle>(command) ? Effects{} : load_again(view);
}

/// Searches this computer, and the known pairs for what fits: all of it without the network.
void look_for_models(ViewModel& view, Effects& effects) {
  effects.search = begin_search(view.models, view.model_path);
  effects.search->standard = view.default_model;
  effects.hub.pairs = hub_here(view);
}

Effects on_hub_command(ViewModel& view, const HubCommand& command) {
  if (const auto* open = std::get_if<OpenWithDrafter>(&command)) {
    if (open->path.empty()) return {};
    view.models.drafter = open->drafter;
    if (!open->drafter.empty()) view.models.draft = true;
    view.shell.page = WindowPage::rounds;
    view.shell.welcome = false;
    return open_model(view, open->path);
  }
  Effects effects;
  effects.hub = update(view.hub, command, hub_here(view), view.last_id);
  return effects;
}

// Commands that change one part of the window's state, and what they ask for beside it; events that end what they
// began.

/// Why nothing can be compared now; whether columns ask a drafter that is not there is the page's to say.
std::string comparison_obstacle(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "A model is being loaded.";
  return {};
}

Effects on_calibration_command(ViewModel& view, const CalibrationCommand& command) {
  const bool possible = view.model_state == ModelState::ready && view.model && !view.report.busy();
  if (const auto* wanted = std::get_if<MeasureWhenIdle>(&command)) view.measures_when_idle = wanted->on;
  Effects effects;
  if (auto asked = update(view.calibration, command, possible)) effects.engine.push_back(*std::move(asked));
  return effects;
}

Effects on_recording_command(ViewModel& view, const RecordingCommand& command) {
  Effects effects;
  if (auto asked = update(view.recording, command, view.model_state == ModelState::ready))
    effects.engine.push_back(*std::move(asked));
  return effects;
}

Effects on_report_command(ViewModel& view, const ReportCommand& command) {
  const bool possible = report_obstacle(view).empty();
  ReportWish wish = update(view.report, command, view.device_selector, possible);
  Effects effects;
  if (wish.engine) effects.engine.push_back(*std::move(wish.engine));
  effects.report = std::move(wish.file);
  return effects;
}

/// The engine elsewhere that is open, or that a key was typed for, is told its key as a column, too; no other server
/// is.
void add_keys(const ViewModel& view, Compare& compare) {
  const auto is_at = [](const std::string& server, const std::string& engine) {
    return is_server_address(engine) && server.starts_with(engine) &&
           (server.size() == engine.size() || engine.ends_with('/') || server[engine.size()] == '/');
  };
  for (ComparisonColumn& column : compare.columns) {
    const std::string server = engine_address(column.server);
    const ModelsState& models = view.models;
    if (is_at(server, models.typed_for)) {
      column.key = models.typed_key;
    } else if (is_at(server, view.model_path)) {
      column.key = models.engine_key;
    }
  }
}

Effects on_comparison_command(ViewModel& view, const ComparisonCommand& command) {
  const ComparisonRoom room{comparison_obstacle(view), view.sweep_file, &view.last_id};
  ComparisonWish wish = update(view.comparison, command, room);
  Effects effects;
  const bool begins = !wish.engine.empty() && std::holds_alternative<Compare>(wish.engine.front());
  // A model that was released is brought back first.
  if (begins && view.model_state == ModelState::released) effects = open_model(view, view.model_path);
  for (Command& each : wish.engine) {
    if (auto* compare = std::get_if<Compare>(&each)) add_keys(view, *compare);
    effects.engine.push_back(std::move(each));
  }
  effects.sweep = std::move(wish.read);
  return effects;
}

Effects on_verify_command(ViewModel& view, const VerifyCommand& command) {
  Effects effects;
  if (auto asked = update_verify(view, command)) effects.engine.push_back(*std::move(asked));
  return effects;
}

Effects on_share_command(ViewModel& view, const ShareCommand& command) {
  Effects effects;
  effects.share = update(view.share, command, view.rounds.log->rounds() > 0);
  return effects;
}

Effects on_rounds_command(ViewModel& view, const RoundsCommand& command) {
  update(view.rounds, command);
  RoundsState& rounds = view.rounds;
  const auto look = [&](const std::optional<NodeRef>& node) {
    return node ? find_place(view, *node) : std::optional<FoundPlace>();
  };
  if (std::holds_alternative<HoverNode>(command)) rounds.hovered_place = look(rounds.hovered);
  if (std::holds_alternative<SelectNode>(command)) rounds.selected_place = look(rounds.selected);
  Effects effects;
  if (const auto* open = std::get_if<OpenTrace>(&command)) effects.trace = open->path;
  if (const auto* watch = std::get_if<WatchDemo>(&command)) effects.demo = watch->demo;
  return effects;
}

Effects on_shell_command(ViewModel& view, const ShellCommand& command) {
  update(view.shell, command);
  Effects effects;
  const auto* page = std::get_if<ShowPage>(&command);
  if (page && (page->page == WindowPage::compare || page->page == WindowPage::sweep))
    effects.sweep = SweepFileRequest{};
  if (page && page->page == WindowPage::models) look_for_models(view, effects);
  if (const auto* show = std::get_if<ShowTour>(&command); show && update_tour(view, *show)) effects.demo = 0;
  if (const auto* step = std::get_if<StepTour>(&command)) update_tour(view, *step);
  return effects;
}

Effects on_what_if_command(ViewModel& view, const WhatIfCommand& command) {
  update(view.what_if, command);
  Effects effects;
  if (const auto* show = std::get_if<ShowAsIf>(&command)) effects.as_if = show->there;
  if (std::holds_alternative<MakeDense>(command) && can_make_dense(view)) {
    view.what_if.densifying = true;
    view.what_if.dense_progress = {};
    effects.engine.push_back(DensifyTrace{view.rounds.trace_path});
  }
  if (std::holds_alternative<StopDense>(command) && view.what_if.densifying) effects.engine.push_back(CancelDensify{});
  const auto* describes = std::get_if<DescribeDevice>(&command);
  if (std::holds_alternative<AddCalibration>(command) || (describes != nullptr && describes->shown)) {
    view.shell.layout = WindowLayout::what_if;
    view.shell.page = WindowPage::rounds;
  }
  const auto* drop = std::get_if<DropOwnDevice>(&command);
  if (drop != nullptr && view.shell.as_if_on == own_choice(drop->name)) view.shell.as_if_on.clear();
  return effects;
}

/// Tells what the check of a recording found: a note where it is as it should be, else a card that stays.
void tell_verified(ViewModel& view) {
  const RecordingVerified& result = *view.verify.result;
  if (result.difference.empty() && result.replies > 0)
    view.chat.note = verified_words(result);
  else
    warn(view, result.replies > 0 ? "The recording has another text" : "The recording cannot be checked",
         verified_words(result));
}

/// The drafts behind every token are there, or not. What was drafted before a cancellation is kept in the file.
void on_densified(ViewModel& view, const TraceDensified& e) {
  view.what_if.densifying = false;
  if (e.cancelled) return;
  if (e.problem.empty())
    view.what_if.dense_trace = e.path;
  else
    warn(view, "The recording got no guesses behind every token", e.problem);
}

// Replies, and what a command ends that was shown before it.

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

void ask_source(ViewModel& view, const AskSource& wanted) {
  const int others = view.draft_sources & ~wanted.source;
  view.draft_sources = static_cast<DraftSources>(kAllSources & (wanted.asked ? others | wanted.source : others));
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
    leave_branch(view.rounds);
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

/// Whether a command shows rounds or a chat, so that the pages of comparisons go.
bool leaves_page(const UiCommand& command) {
  if (leaves_replay(command)) return true;
  const auto* rounds = std::get_if<RoundsCommand>(&command);
  return rounds && (std::holds_alternative<WatchDemo>(*rounds) || std::holds_alternative<OpenTrace>(*rounds));
}

/// Whether a command chooses what to see, so that the start page goes. To open the model of the set-up does not, as it
/// is opened by itself at the start.
bool leaves_start(const ViewModel& view, const UiCommand& command) {
  const auto* open = std::get_if<OpenModel>(&command);
  return open ? open->path != view.default_model : leaves_page(command);
}

Effects apply(ViewModel& view, const UiCommand& command) {
  return ask_for_rounds(
      view,
      std::visit(Cases{
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
                     [&](const SetDrafting& c) { return set_drafting(view, c.mode), Effects{}; },
                     [&](const SetGuessing& c) { return set_guessing(view, c.on), Effects{}; },
                     [&](const AskSource& c) { return ask_source(view, c), Effects{}; },
                     [&](const ForgetEarlierReplies&) {
                       view.chat.note = "Earlier replies are forgotten: guesses come from this chat alone";
                       Effects effects;
                       effects.engine.push_back(ForgetReplies{});
                       return effects;
                     },
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
                     [&](const HubCommand& c) { return on_hub_command(view, c); },
                     [&](const ServedCommand& c) { return update_served(view, c); },
                     [&](const CheckCommand& c) {
                       return Effects{update_check(view, c), false, {}};
                     },
                 },
                 command));
}

}  // namespace

const Message* ViewModel::last_reply() const {
  return messages.empty() || messages.back().role != Role::assistant ? nullptr : &messages.back();
}

void update(ViewModel& view, const Event& event) {
  note_work(view);
  if (update_served(view, event) || update(view.comparison, event)) return;
  update(view.rounds, event);
  update(view.models, event);
  update(view.calibration, event);
  update(view.report, event);
  update(view.checks, event);
  if (update(view.verify, event)) tell_verified(view);
  note_ar(view, event);
  if (const std::string problem = update(view.recording, event); !problem.empty())
    warn(view, "The recording has stopped", problem);
  std::visit(Cases{
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

void follow_playback(ViewModel& view) {
  if (view.replaying())
    view.replay.show(view.rounds.playback.shown, view.rounds.playback.told());
  else if (!view.replay.conversation().empty())
    view.replay = {};
}

Effects update(ViewModel& view, const UiCommand& command) {
  note_work(view);
  if (view.replaying() && leaves_replay(command)) update(view.rounds, CloseTrace{});
  if (leaves_replay(command)) leave_served(view);
  if (leaves_start(view, command)) view.shell.welcome = false;
  const bool opens = std::holds_alternative<OpenModel>(command) && view.shell.page == WindowPage::models;
  if (opens || leaves_page(command)) view.shell.page = WindowPage::rounds;
  const bool of_calibration = std::holds_alternative<CalibrationCommand>(command);
  const std::optional<Command> interrupt = of_calibration ? std::nullopt : interrupt_remeasuring(view.calibration);
  Effects effects = apply(view, command);
  follow_playback(view);
  hold_replies(view, effects.engine);
  effects = before_check(view, std::move(effects));
  if (interrupt) effects.engine.insert(effects.engine.begin(), *interrupt);
  return effects;
}

void begin_load(ViewModel& view, const std::string& path) {
  std::erase_if(view.cards, [](const Card& c) { return c.about_model && c.action != Card::Action::run_again; });
  view.model_path = path;
  view.model_state = ModelState::loading;
  view.loading = {"Opening " + file_name(path), 0, 0};
  view.path_box_shown = false;
}

bool can_make_dense(const ViewModel& view) {
  return view.model_state == ModelState::ready && view.has_drafter() && view.replaying() &&
         view.rounds.log->times().empty() && !view.what_if.densifying;
}

std::string report_obstacle(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "A model is being loaded";
  if (view.calibration.busy()) return "A calibration is running";
  if (view.comparison.busy()) return "A comparison is being measured";
  const bool usable = std::ranges::any_of(view.devices, &DeviceChoice::usable);
  return usable ? "" : "There is no device that can be used";
}

// The cards of failures and warnings.

void add_card(ViewModel& view, Card card) {
  card.id = ++view.last_id;
  // A card with the same text replaces the old one, so that repeated failures of "Load again" do not pile up.
  std::erase_if(view.cards, [&](const Card& c) { return c.title == card.title && c.detail == card.detail; });
  view.cards.push_back(std::move(card));
}

void warn(ViewModel& view, const std::string& title, const std::string& detail) {
  add_card(view, {0, true, title, detail, Card::Action::none, false});
}

void fail(ViewModel& view, const std::string& title, const std::string& detail) {
  add_card(view, {0, false, title, detail, Card::Action::none, false});
}

// What the state is called for the user: titles, figures of progress, the engine's activity.

float Progress::fraction() const {
  if (total == 0) return -1.0f;
  return std::clamp(static_cast<float>(static_cast<double>(done) / static_cast<double>(total)), 0.0f, 1.0f);
}

std::string model_title(const ModelReady& model) {
  const std::string title = model_name(model.name, model.file_name, model.quantization);
  return title + (model.quantized_to.empty() ? "" : " as " + model.quantized_to) +
         (model.kernels_note.empty() ? "" : ", 8-bit activations");
}

void require_not_in_use(const ViewModel& view, const std::filesystem::path& target) {
  std::vector<NamedFile> in_use = {{"the recording that is shown,", view.rounds.trace_path}};
  if (view.recording.running()) in_use.push_back({"the recording under way,", view.recording.path});
  if (view.model_state != ModelState::none) {
    for (const std::string& model : {view.model_path, view.models.drafter}) {
      if (model.empty()) continue;
      for (const std::filesystem::path& file : model_files(model)) in_use.push_back({"the model in use,", file});
    }
  }
  const std::vector<NamedFile> outputs = {{"This", target}};
  require_other_files(outputs, in_use);
}

std::string file_name(const std::string& path) {
  const std::filesystem::path p(path);
  return p.has_filename() ? p.filename().string() : p.parent_path().filename().string();
}

std::string progress_figures(const Progress& p) {
  return canopy::progress_figures(p.done, p.total, p.in_bytes, p.seconds_left);
}

std::string state_words(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "Loading";
  switch (view.reply_state) {
    case ReplyState::reading_prompt: return "Reading prompt";
    case ReplyState::writing: return "Generating";
    case ReplyState::stopping: return "Stopping";
    case ReplyState::idle: break;
  }
  if (view.checks.check.running()) return "Checking against plain decoding";
  if (view.comparison.busy()) return view.comparison.progress.paused ? "Paused measuring" : "Measuring";
  if (view.model_state == ModelState::released) return released_words(view);
  if (view.served.busy()) return "Serving";
  return view.model_state == ModelState::ready ? "Ready" : "No model";
}

std::optional<Work> recording_work(const ViewModel& view) {
  if (view.verify.running) {
    const VerifyProgress& p = view.verify.progress;
    const std::string which = p.replies > 1 ? " " + grouped(p.reply + 1) + " of " + grouped(p.replies) : "";
    return Work{{"Checking reply" + which, p.done, p.total, false, -1}, VerifyCommand(StopVerifying{})};
  }
  if (!view.what_if.densifying) return std::nullopt;
  const DensifyProgress& p = view.what_if.dense_progress;
  return Work{{"Guessing behind every token", p.done, p.total, false, -1}, WhatIfCommand(StopDense{})};
}

std::optional<Work> work_under_way(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return Work{view.loading, CancelLoading{}};
  if (view.reply_state == ReplyState::reading_prompt)
    return Work{{"", view.prompt.done, view.prompt.total, false, view.prompt.seconds_left}, StopWriting{}};
  if (view.report.busy()) {
    const LoadProgress& step = view.report.step;
    const std::string stage = step.stage.empty() ? "Reporting the device" : step.stage;
    return Work{{stage, step.done, step.total, step.in_bytes, step.seconds_left}, ReportCommand(StopReport{})};
  }
  if (view.comparison.busy()) {
    const ComparisonProgress& p = view.comparison.progress;
    return Work{{p.stage, p.done, p.total, false, p.seconds_left}, ComparisonCommand(StopMeasuring{})};
  }
  if (auto work = recording_work(view)) return work;
  if (!view.calibration.busy()) return std::nullopt;
  const CalibrationProgress& p = view.calibration.progress;
  return Work{{"Measuring passes", p.done, p.total, false, p.seconds_left}, CalibrationCommand(StopCalibration{})};
}

}  // namespace canopy::app
