#include "app/state/comparison.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>

#include "engine/base/error.h"
#include "engine/bench/prompt_file.h"
#include "engine/bench/sweep_file.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

/// The file, or what its journal has of a measurement that was not finished.
Sweep read_kept(const std::string& path) {
  if (std::optional<Sweep> unfinished = unfinished_sweep(path)) return *std::move(unfinished);
  return read_sweep(path);
}

std::vector<ComparisonPrompt> as_chats(const std::vector<MeasuredPrompt>& measured) {
  std::vector<ComparisonPrompt> prompts;
  for (const MeasuredPrompt& prompt : measured)
    prompts.push_back({prompt.id, prompt.category, {{"user", prompt.text}}});
  return prompts;
}

/// What it takes to go on with a sweep.
void find_prompts(SweepFileResult& result, const SweepPlaces& places) {
  std::vector<MeasuredPrompt> known;
  try {
    if (!places.prompts.empty()) known = read_all_prompts({places.prompts});
  } catch (const Error&) {  // said of the list; they may lie beside the sweep
  }
  try {
    result.prompts = as_chats(prompts_of(*result.sweep, result.request.path, known));
  } catch (const Error& e) {
    result.prompts_missing = e.what();
  }
}

}  // namespace

std::string user_sweep_folder() {
  try {
    return sweep_folder().string();
  } catch (const Error&) {
    return "";
  }
}

SweepFileResult read_for(const SweepFileRequest& request, const SweepPlaces& places) {
  SweepFileResult result;
  result.request = request;
  if (!places.folder.empty()) result.kept = kept_sweeps(places.folder);
  if (!places.recorded.empty()) result.recorded = kept_sweeps(places.recorded);
  if (request.what == SweepFileRequest::What::list) {
    try {
      if (!places.prompts.empty()) result.bundled = as_chats(read_all_prompts({places.prompts}));
      if (places.prompts.empty()) result.prompts_problem = "Canopy's own prompts are not beside the program.";
    } catch (...) {
      result.prompts_problem = as_error(std::current_exception()).what();
    }
    return result;
  }
  try {
    result.sweep = std::make_shared<const Sweep>(read_kept(request.path));
    const bool opened = request.what == SweepFileRequest::What::open;
    if (opened && !result.sweep->complete()) find_prompts(result, places);
  } catch (...) {
    result.problem = as_error(std::current_exception()).what();
  }
  return result;
}

SweepReader sweep_reader(SweepPlaces places) {
  return {[places = std::move(places)](const SweepFileRequest& request, const std::stop_token&) {
            return read_for(request, places);
          },
          Waiting::is_answered};
}

namespace {

using MeasuringPhase = ComparisonState::Phase;

bool is_of_comparison(const ComparisonState& state, uint64_t reply_id) {
  return reply_id != 0 && reply_id >= state.first_reply_id && reply_id <= state.last_reply_id;
}

MeasuredPlan* plan_under_way(ComparisonState& state) {
  std::optional<MeasuredPlan>& plan = state.kind == SweepKind::sweep ? state.sweep : state.comparison;
  return state.busy() && plan && plan->id == state.progress.id ? &*plan : nullptr;
}

/// The reply that is being written, if the event is of it.
ComparedReply* reply_of(ComparisonState& state, uint64_t reply_id) {
  if (!state.writing || reply_id != state.writing_reply_id) return nullptr;
  return &state.replies[{state.writing->prompt, state.writing->contestant}];
}

void on_begun(ComparisonState& state, const ComparisonBegun& begun) {
  MeasuredPlan plan;
  plan.id = begun.id;
  plan.sweep = *begun.sweep;
  plan.changes = 1;
  plan.must_agree = begun.must_agree;
  plan.file = state.file;
  plan.prompts = state.asked;
  if (state.kind == SweepKind::sweep) {
    state.baseline = plan.sweep.baseline;
    state.sweep = std::move(plan);
  } else {
    state.comparison = std::move(plan);
  }
}

void on_progress(ComparisonState& state, const ComparisonProgress& progress) {
  if (progress.id != state.progress.id) return;
  state.progress = progress;
  if (state.phase == MeasuringPhase::waiting) state.phase = MeasuringPhase::running;
}

void on_run_begun(ComparisonState& state, const ComparisonRunBegun& begun) {
  state.writing.reset();
  state.writing_reply_id = begun.reply_id;
  if (begun.reply_id == 0) return;
  state.writing = begun.key;
  ComparedReply& reply = state.replies[{begun.key.prompt, begun.key.contestant}];
  reply = {};
  reply.message.id = begun.reply_id;
  reply.message.role = Role::assistant;
  reply.message.writing = true;
  if (state.follows) state.shown_prompt = begun.key.prompt;
  state.race = {};
}

void on_made(ComparisonState& state, const ComparisonRun& made) {
  MeasuredPlan* plan = plan_under_way(state);
  if (plan == nullptr) return;
  const auto known = std::ranges::find(plan->sweep.runs, made.run.key, &MeasuredRun::key);
  if (known == plan->sweep.runs.end())
    plan->sweep.runs.push_back(made.run);
  else
    *known = made.run;
  ++plan->changes;
  if (!state.writing || !(*state.writing == made.run.key)) return;
  ComparedReply& reply = state.replies[{made.run.key.prompt, made.run.key.contestant}];
  reply.message.writing = false;
  reply.message.tokens = made.run.tokens;
  reply.decode_ms = made.run.decode_ms;
  reply.prefill_ms = made.run.prefill_ms;
  reply.ended = true;
  state.writing.reset();
}

void on_finished(ComparisonState& state, const ComparisonFinished& finished) {
  if (finished.id != state.progress.id) return;
  if (MeasuredPlan* plan = plan_under_way(state)) {
    plan->sweep = *finished.sweep;
    ++plan->changes;
    plan->file = finished.file;
    plan->problem = finished.problem;
    plan->cancelled = finished.cancelled;
  }
  state.phase = MeasuringPhase::idle;
  if (state.writing) state.replies.erase({state.writing->prompt, state.writing->contestant});
  state.writing.reset();
}

void on_round(ComparedReply& reply, const RoundFinished& finished) {
  if (finished.round == nullptr) return;
  const RoundRecord& record = *finished.round;
  append_spans(reply.message, record, record.round, finished.text_begin, finished.text_ends);
  RaceRound round;
  round.begin_ms = reply.decode_ms;
  round.end_ms = round.begin_ms + record.ms.total();
  round.emitted = static_cast<uint32_t>(record.emitted.size());
  round.accepted = record.accepted;
  round.width = record.width;
  round.text_end = finished.text_ends.empty() ? finished.text_begin : finished.text_ends.back();
  reply.rounds.push_back(round);
  reply.decode_ms = round.end_ms;
  reply.ms.draft += record.ms.draft;
  reply.ms.build += record.ms.build;
  reply.ms.verify += record.ms.verify;
  reply.ms.walk += record.ms.walk;
  reply.ms.commit += record.ms.commit;
  reply.ms.other += record.ms.other;
}

/// The events of a reply. False for those of replies that are no comparison's.
bool on_reply_event(ComparisonState& state, const Event& event) {
  if (const auto* prompt = std::get_if<PrefillProgress>(&event)) return is_of_comparison(state, prompt->reply_id);
  if (const auto* learnt = std::get_if<Learnt>(&event)) return is_of_comparison(state, learnt->reply_id);
  if (const auto* started = std::get_if<ReplyStarted>(&event)) {
    if (ComparedReply* reply = reply_of(state, started->reply_id)) reply->prefill_ms = started->prefill_ms;
    return is_of_comparison(state, started->reply_id);
  }
  if (const auto* text = std::get_if<TextDelta>(&event)) {
    if (ComparedReply* reply = reply_of(state, text->reply_id)) {
      reply->message.text += text->text;
      reply->message.thought = text->thought;
      reply->message.tokens = text->reply_tokens;
    }
    return is_of_comparison(state, text->reply_id);
  }
  if (const auto* round = std::get_if<RoundFinished>(&event)) {
    if (ComparedReply* reply = reply_of(state, round->reply_id)) on_round(*reply, *round);
    return is_of_comparison(state, round->reply_id);
  }
  return false;
}

void end_without_result(ComparisonState& state, const Failure& failure) {
  state.phase = MeasuringPhase::idle;
  state.writing.reset();
  state.note = failure.kind == ErrorKind::cancelled ? "Cancelled." : failure.title + ". " + failure.detail;
}

Compare plan(ComparisonState& state, const ComparisonRoom& room, SweepKind kind) {
  Compare command;
  command.id = ++*room.next_id;
  command.kind = kind;
  command.file = room.file;
  state.kind = kind;
  state.file = room.file;
  state.phase = MeasuringPhase::waiting;
  state.note.clear();
  state.progress = {};
  state.progress.id = command.id;
  return command;
}

Compare compare_now(ComparisonState& state, const ComparisonRoom& room) {
  Compare command = plan(state, room, SweepKind::comparison);
  const CompareSetup& setup = state.compare_setup;
  command.columns = setup.columns;
  if (setup.bundled)
    command.prompts = prompts_of(SweepSetup{}, state.bundled);
  else
    command.prompts = {{"prompt", "prompt", {{"user", setup.prompt}}}};
  state.asked = command.prompts;
  command.settings.repeats = setup.repeats;
  command.settings.max_tokens = setup.max_tokens;
  command.first_reply_id = *room.next_id + 1;
  *room.next_id += uint64_t{command.columns.size()} * command.prompts.size();
  state.first_reply_id = command.first_reply_id;
  state.last_reply_id = *room.next_id;
  state.comparison.reset();
  state.prompts = command.prompts;
  state.replies.clear();
  state.writing.reset();
  state.shown_prompt = 0;
  state.follows = true;
  state.race = {};
  return command;
}

Compare sweep_now(ComparisonState& state, const ComparisonRoom& room) {
  Compare command = plan(state, room, SweepKind::sweep);
  const SweepSetup& setup = state.sweep_setup;
  command.columns = columns_of(setup);
  command.prompts = state.asked = prompts_of(setup, state.bundled);
  command.settings.repeats = setup.repeats;
  command.settings.max_tokens = setup.max_tokens;
  return command;
}

/// The plan of the shown sweep; nothing where the window cannot ask for it.
std::optional<Compare> resumed(ComparisonState& state, const ComparisonRoom& room) {
  if (!state.sweep || state.sweep->sweep.complete() || !go_on_obstacle(*state.sweep).empty()) return std::nullopt;
  const Sweep& sweep = state.sweep->sweep;
  Compare command = plan(state, room, SweepKind::sweep);
  command.kind = sweep.kind;  // a comparison that is gone on with here is shown here
  for (const SweepContestant& contestant : sweep.contestants)
    command.columns.push_back({contestant.way, "", "", "", ""});
  command.prompts = state.asked = state.sweep->prompts;
  command.settings = sweep.settings;
  command.baseline = sweep.baseline;
  command.file = state.file = state.sweep->file;
  command.resume = true;
  return command;
}

void set(ComparisonState& state, CompareSetup setup) {
  setup.repeats = std::clamp(setup.repeats, 1u, kMostRepeats);
  setup.max_tokens = std::clamp(setup.max_tokens, 2u, kMostReplyTokens);
  if (setup.columns.size() < kLeastColumns || setup.columns.size() > kMostColumns) return;
  for (ComparisonColumn& column : setup.columns) {
    const bool tree = column.way.mode == DecodeMode::tree;
    column.way.budget = tree ? std::clamp(column.way.budget, 1u, kMostBudget) : 0;
    if (column.way.mode == DecodeMode::ar) column.way.sources = kUsualSources;  // it asks none
  }
  // What other columns reached says nothing of these; it is in its file.
  if (!state.busy() && setup.columns != state.compare_setup.columns) {
    state.comparison.reset();
    state.replies.clear();
    state.race = {};
  }
  state.compare_setup = std::move(setup);
}

void set(ComparisonState& state, SweepSetup setup) {
  setup.repeats = std::clamp(setup.repeats, 1u, kMostRepeats);
  setup.max_tokens = std::clamp(setup.max_tokens, 2u, kMostReplyTokens);
  std::erase_if(setup.budgets, [](uint32_t budget) { return budget == 0 || budget > kMostBudget; });
  std::ranges::sort(setup.budgets);
  setup.budgets.erase(std::ranges::unique(setup.budgets).begin(), setup.budgets.end());
  state.sweep_setup = std::move(setup);
}

bool can_start(const ComparisonState& state, const ComparisonRoom& room, SweepKind kind) {
  if (state.busy() || !room.obstacle.empty()) return false;
  if (kind == SweepKind::sweep) return !state.bundled.empty() && !columns_of(state.sweep_setup).empty();
  return state.compare_setup.bundled ? !state.bundled.empty() : !state.compare_setup.prompt.empty();
}

}  // namespace

uint32_t ComparedReply::text_at(double ms) const {
  if (ended && ms >= decode_ms) return static_cast<uint32_t>(message.text.size());
  if (rounds.empty()) {  // of a server: as if it had written evenly
    const double share = decode_ms > 0 ? std::clamp(ms / decode_ms, 0.0, 1.0) : 1;
    return static_cast<uint32_t>(share * static_cast<double>(message.text.size()));
  }
  uint32_t end = message.spans.empty() ? 0 : message.spans.front().end;  // of the prompt's pass
  for (const RaceRound& round : rounds)
    if (round.end_ms <= ms) end = std::max(end, round.text_end);
  return std::min(end, static_cast<uint32_t>(message.text.size()));
}

uint32_t ComparedReply::tokens_at(double ms) const {
  if (rounds.empty()) {
    const double share = decode_ms > 0 ? std::clamp(ms / decode_ms, 0.0, 1.0) : 1;
    return static_cast<uint32_t>(std::lround(share * message.tokens));
  }
  uint32_t tokens = 1;
  for (const RaceRound& round : rounds)
    if (round.end_ms <= ms) tokens += round.emitted;
  return tokens;
}

std::string go_on_obstacle(const MeasuredPlan& plan) {
  if (plan.file.empty()) return "It is in no file that could be gone on with.";
  if (plan.sweep.subjects.size() > 1 || (!plan.sweep.subjects.empty() && plan.sweep.subjects[0].is_server()))
    return "It has several models, devices or servers: canopy-cli sweep --resume can go on with it.";
  return plan.prompts.empty() ? plan.prompts_missing : "";
}

const ComparedReply* ComparisonState::reply(uint32_t prompt, uint32_t column) const {
  const auto found = replies.find({prompt, column});
  return found == replies.end() ? nullptr : &found->second;
}

double ComparisonState::race_end() const {
  double end = 0;
  for (const auto& [key, reply] : replies)
    if (key.first == shown_prompt) end = std::max(end, reply.decode_ms);
  return end;
}

double ComparisonState::race_now() const {
  if (writing && writing->prompt == shown_prompt) {
    const ComparedReply* growing = reply(writing->prompt, writing->contestant);
    return growing != nullptr ? growing->decode_ms : 0;
  }
  return race.at_ms ? std::clamp(*race.at_ms, 0.0, race_end()) : race_end();
}

bool update(ComparisonState& state, const Event& event) {
  if (const auto* begun = std::get_if<ComparisonBegun>(&event)) {
    if (begun->id == state.progress.id) on_begun(state, *begun);
    return true;
  }
  if (const auto* progress = std::get_if<ComparisonProgress>(&event)) return on_progress(state, *progress), true;
  if (const auto* begun = std::get_if<ComparisonRunBegun>(&event)) {
    if (begun->id == state.progress.id && state.kind == SweepKind::comparison) on_run_begun(state, *begun);
    return true;
  }
  if (const auto* made = std::get_if<ComparisonRun>(&event)) return on_made(state, *made), true;
  if (const auto* finished = std::get_if<ComparisonFinished>(&event)) return on_finished(state, *finished), true;
  if (const auto* failure = std::get_if<Failure>(&event)) {
    const bool gone = failure->kind == ErrorKind::device_lost;
    if (state.busy() && (failure->reply_id == 0 || gone)) end_without_result(state, *failure);
    return false;  // others hear of it too
  }
  return on_reply_event(state, event);
}

ComparisonWish update(ComparisonState& state, const ComparisonCommand& command, const ComparisonRoom& room) {
  ComparisonWish wish;
  if (const auto* setup = std::get_if<SetCompareSetup>(&command)) {
    set(state, setup->setup);
  } else if (const auto* sweep_setup = std::get_if<SetSweepSetup>(&command)) {
    set(state, sweep_setup->setup);
  } else if (std::holds_alternative<StartComparison>(command)) {
    if (can_start(state, room, SweepKind::comparison)) wish.engine.emplace_back(compare_now(state, room));
  } else if (std::holds_alternative<StartSweep>(command)) {
    if (can_start(state, room, SweepKind::sweep)) wish.engine.emplace_back(sweep_now(state, room));
  } else if (std::holds_alternative<GoOnWithSweep>(command)) {
    if (state.busy() || !room.obstacle.empty()) return {};
    if (std::optional<Compare> again = resumed(state, room)) wish.engine.emplace_back(*std::move(again));
  } else if (std::holds_alternative<StopMeasuring>(command)) {
    if (!state.busy() || state.phase == MeasuringPhase::cancelling) return {};
    state.phase = MeasuringPhase::cancelling;
    wish.engine.emplace_back(CancelComparison{});
  } else if (const auto* pause = std::get_if<PauseMeasuring>(&command)) {
    if (state.busy()) wish.engine.emplace_back(PauseComparison{pause->paused});
  } else if (const auto* show = std::get_if<ShowComparedPrompt>(&command)) {
    if (show->prompt >= state.prompts.size()) return {};
    state.shown_prompt = show->prompt;
    state.follows = state.writing && state.writing->prompt == show->prompt;
    state.race = {};
  } else if (const auto* seek = std::get_if<SeekRace>(&command)) {
    state.race = {seek->ms, false};
  } else if (const auto* play = std::get_if<PlayRace>(&command)) {
    if (play->playing && state.race_now() >= state.race_end()) state.race.at_ms = 0;
    state.race.playing = play->playing && state.can_race();
  } else if (const auto* baseline = std::get_if<SetBaseline>(&command)) {
    if (state.sweep && baseline->column < state.sweep->sweep.contestants.size()) state.baseline = baseline->column;
  } else if (const auto* open = std::get_if<OpenSweep>(&command)) {
    if (state.measures(SweepKind::sweep)) return {};
    state.files.reading = true;
    wish.read = SweepFileRequest{SweepFileRequest::What::open, open->path};
  } else if (const auto* add = std::get_if<AddOverlay>(&command)) {
    state.files.reading = true;
    wish.read = SweepFileRequest{SweepFileRequest::What::overlay, add->path};
  } else if (const auto* drop = std::get_if<DropOverlay>(&command)) {
    if (drop->index < state.files.layers.size())
      state.files.layers.erase(state.files.layers.begin() + static_cast<std::ptrdiff_t>(drop->index));
  }
  return wish;
}

void end_read(ComparisonState& state, SweepFileResult result) {
  SweepFiles& files = state.files;
  files.kept = std::move(result.kept);
  files.recorded = std::move(result.recorded);
  if (result.request.what == SweepFileRequest::What::list) {
    if (!result.bundled.empty()) state.bundled = std::move(result.bundled);
    state.prompts_problem = result.prompts_problem;
    return;
  }
  files.reading = false;
  files.problem = result.problem;
  if (result.sweep == nullptr) return;
  if (result.request.what == SweepFileRequest::What::overlay) {
    std::erase_if(files.layers, [&](const SweepLayer& layer) { return layer.path == result.request.path; });
    files.layers.push_back({result.request.path, result.sweep});
    return;
  }
  if (state.measures(SweepKind::sweep)) return;
  MeasuredPlan read;
  read.sweep = *result.sweep;
  read.changes = 1;
  read.file = result.request.path;
  read.prompts = std::move(result.prompts);
  read.prompts_missing = std::move(result.prompts_missing);
  state.baseline = read.sweep.baseline;
  state.sweep = std::move(read);
}

double race_slowdown(double end_ms) {
  constexpr double wanted_ms = 10'000;
  constexpr double steps[] = {1, 2, 5, 10, 20, 50, 100};
  double best = 1;
  for (const double step : steps)
    if (end_ms > 0 && end_ms * step <= wanted_ms * 1.25) best = step;
  return best;
}

void advance(ComparisonState& state, double ms) {
  if (!state.race.playing) return;
  const double end = state.race_end();
  const double now = state.race.at_ms.value_or(0) + ms / race_slowdown(end);
  if (now >= end)
    state.race = {};
  else
    state.race.at_ms = now;
}

std::vector<ComparisonColumn> columns_of(const SweepSetup& setup) {
  std::vector<ComparisonColumn> columns;
  const auto add = [&](DecodeMode mode, uint32_t budget) { columns.push_back({{mode, budget}, "", "", "", ""}); };
  if (setup.ar) add(DecodeMode::ar, 0);
  if (setup.chain) add(DecodeMode::chain, 0);
  for (const uint32_t budget : setup.budgets) add(DecodeMode::tree, budget);
  if (setup.adaptive) add(DecodeMode::adaptive, 0);
  return columns;
}

std::vector<ComparisonPrompt> prompts_of(const SweepSetup& setup, const std::vector<ComparisonPrompt>& bundled) {
  std::map<std::string, uint32_t> taken;
  std::vector<ComparisonPrompt> prompts;
  for (const ComparisonPrompt& prompt : bundled)
    if (setup.prompts == 0 || taken[prompt.category]++ < setup.prompts) prompts.push_back(prompt);
  return prompts;
}

}  // namespace canopy::app
