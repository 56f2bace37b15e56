#include "app/state/recording.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include "app/state/chat.h"
#include "app/state/shell.h"
#include "app/state/view_model.h"
#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/text/unicode.h"

namespace canopy::app {
namespace {

std::string take(RecordingState& state, const Recording& event) {
  const bool ran = state.running();
  state.told = event;
  if (event.active) {
    if (state.phase != RecordingPhase::ending) state.phase = RecordingPhase::on;
    return "";
  }
  state.phase = RecordingPhase::off;
  return ran ? event.problem : "";
}

bool is_end_of_asking(const RecordingState& state, const Failure& event) {
  // A recording that cannot begin is reported as a failure without a reply. If it was another command that failed, the
  // Recording event that follows corrects the phase.
  return state.phase == RecordingPhase::asked && event.reply_id == 0;
}

std::optional<Command> start(RecordingState& state, const StartRecording& command) {
  state.box_shown = false;
  state.phase = RecordingPhase::asked;
  state.path = recording_path(command.path).string();
  state.told = {};
  return RecordTrace{state.path, command.redact, command.dense && !command.redact};
}

}  // namespace

std::string update(RecordingState& state, const Event& event) {
  if (const auto* recording = std::get_if<Recording>(&event)) return take(state, *recording);
  if (const auto* failure = std::get_if<Failure>(&event); failure && is_end_of_asking(state, *failure)) {
    state.phase = RecordingPhase::off;
    state.path.clear();
  }
  // Loading another model ends the recording, also one that had not begun yet.
  if (std::holds_alternative<ModelReady>(event) && state.phase == RecordingPhase::ending)
    state.phase = RecordingPhase::off;
  return "";
}

std::optional<Command> update(RecordingState& state, const RecordingCommand& command, bool possible) {
  if (const auto* show = std::get_if<ShowRecordBox>(&command)) state.box_shown = show->shown && possible;
  if (const auto* begin = std::get_if<StartRecording>(&command))
    return possible && !state.running() && !begin->path.empty() ? start(state, *begin) : std::nullopt;
  if (std::holds_alternative<EndRecording>(command) && state.running() && state.phase != RecordingPhase::ending) {
    state.phase = RecordingPhase::ending;
    return StopRecording{};
  }
  return std::nullopt;
}

std::filesystem::path recording_path(const std::string& typed) {
  std::filesystem::path path = typed_path(typed);
  if (!path.has_extension()) path += trace::extension;
  return path;
}

std::string user_trace_folder() {
  try {
    return (data_dir() / "traces").string();
  } catch (const Error&) {
    return "";
  }
}

std::string recording_name(int64_t now_ms) {
  const std::time_t seconds = now_ms / 1000;
  std::tm parts = {};
  char text[48] = "canopy";
  if (::localtime_r(&seconds, &parts)) std::strftime(text, sizeof text, "canopy-%Y-%m-%d-%H%M%S", &parts);
  return std::string(text) + std::string(trace::extension);
}

namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// The text between control tokens, one string for each stretch. The name of a channel (engine/text/chat_turn.h)
/// is none.
std::vector<std::string> stretches(std::span<const uint32_t> tokens, const PieceOf& piece) {
  std::vector<std::string> found(1);
  Utf8Stream characters;
  bool names_channel = false;
  for (const uint32_t token : tokens) {
    const auto text = piece(token);
    if (!text) continue;
    if (text->control) {
      found.back() += characters.finish();
      found.emplace_back();
      names_channel = text->bytes == "<|channel|>";
    } else if (!names_channel) {
      found.back() += characters.push(text->bytes);
    }
  }
  found.back() += characters.finish();
  return found;
}

struct RoleWord {
  std::string_view word, role;
};
constexpr RoleWord kRoles[] = {
    {"system", "system"}, {"user", "user"}, {"human", "user"}, {"model", "assistant"}, {"assistant", "assistant"}};

/// The role named on the first line of a stretch, which is removed from text; empty where no role is named.
std::string_view take_role(std::string_view& text) {
  const std::string_view rest = text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
  for (const RoleWord& each : kRoles) {
    if (!rest.starts_with(each.word)) continue;
    const std::string_view behind = rest.substr(each.word.size());
    if (!behind.empty() && behind.front() != '\n') continue;
    text = behind;
    return each.role;
  }
  return {};
}

}  // namespace

std::vector<ChatTurn> prompt_turns(std::span<const uint32_t> tokens, const PieceOf& piece) {
  std::vector<ChatTurn> turns;
  std::string all;
  std::string_view role;  // named already, its text still to come
  for (const std::string& stretch : stretches(tokens, piece)) {
    std::string_view text = stretch;
    if (const std::string_view named = take_role(text); !named.empty()) role = named;
    const std::string_view words = trimmed(text);
    if (words.empty()) continue;
    all += (all.empty() ? "" : "\n\n") + std::string(words);
    if (role.empty()) continue;
    turns.push_back({std::string(role), std::string(words)});
    role = {};
  }
  if (turns.empty() && !all.empty()) turns.push_back({"user", std::move(all)});
  return turns;
}

namespace {

std::string name_of(const TraceModel& model) {
  return model_name(model.name, model.file_name, model.quantization);
}

ReplayOrigin replay_origin_of(const TraceHeader& header) {
  ReplayOrigin origin;
  origin.target = name_of(header.target);
  if (header.drafter) origin.drafter = name_of(*header.drafter);
  origin.device = header.times.empty() ? header.device : header.device + " (" + header.times + ")";
  origin.driver = header.driver;
  const std::optional<int64_t> moment = moment_in(header.created);
  origin.recorded = moment ? local_minute(*moment) : header.created;
  origin.redacted = header.redacted;
  origin.times = header.times;
  return origin;
}

/// Appends the text of tokens, in whole characters, and returns the size of the text in bytes after each token.
class Writer {
 public:
  /// drops_space: the vocabulary begins every text with a space that the user does not see; leave it out.
  Writer(const TraceLog& log, std::span<const uint32_t> prompt, std::string& text, bool drops_space)
      : log_(log), text_(text), drops_space_(drops_space) {
    const auto piece = [&](uint32_t token) {
      const auto found = log.piece(token);
      return found ? ReplyChannels::Piece{found->bytes, found->control} : ReplyChannels::Piece{};
    };
    in_channels_ = channels_.begin(prompt, piece);
  }

  uint32_t push(uint32_t token) {
    const auto piece = log_.piece(token);
    if (piece && !piece->control) {
      std::string_view bytes = piece->bytes;
      if (std::exchange(drops_space_, false) && bytes.starts_with(' ')) bytes.remove_prefix(1);
      add(characters_.push(bytes));
    } else if (piece && in_channels_) {
      add(characters_.finish());
      ReplyChannels::Shown headless;
      channels_.control(piece->bytes, headless);
      text_ += headless.lead + headless.text;
    }
    return static_cast<uint32_t>(text_.size());
  }

  ThoughtPart thought() const { return in_channels_ ? channels_.thought() : ThoughtPart(); }

 private:
  void add(const std::string& characters) {
    if (!in_channels_) {
      text_ += characters;
      return;
    }
    const ReplyChannels::Shown shown = channels_.text(characters);
    text_ += shown.lead + shown.text;
  }

  const TraceLog& log_;
  std::string& text_;
  Utf8Stream characters_;
  ReplyChannels channels_;
  bool in_channels_ = false;
  bool drops_space_;
};

ReplyFinished result_of(const TraceReply& reply, const ReplySummary& summary, uint32_t emitted, double rounds_ms) {
  ReplyFinished result;
  result.reason = reply.end ? reply.end->reason : FinishReason::cancelled;
  result.mode = summary.mode;
  result.plain = summary.plain;
  result.prompt_tokens = reply.begin.prompt_tokens;
  if (reply.prefill) result.reused_tokens = reply.prefill->reused_tokens;
  if (reply.prefill) result.prefill_ms = reply.prefill->ms;
  result.reply_tokens = reply.end ? reply.end->reply_tokens : emitted + 1;
  result.decode_ms = reply.end && reply.end->decode_ms > 0 ? reply.end->decode_ms : rounds_ms;
  if (result.decode_ms > 0) result.tokens_per_second = 1000.0 * emitted / result.decode_ms;
  if (summary.rounds > 0) result.tau = static_cast<double>(emitted) / static_cast<double>(summary.rounds);
  return result;
}

/// Index of the first turn that the conversation so far (`said`) does not have. The prompt of a conversation that goes
/// on repeats all of it. Only the user's turns are compared, since the model's own text may look different in a prompt.
size_t first_unsaid(const std::vector<ChatTurn>& turns, const std::vector<ChatTurn>& said) {
  bool goes_on = turns.size() > said.size();
  for (size_t i = 0; goes_on && i < said.size(); ++i)
    goes_on = turns[i].role == said[i].role && (turns[i].role != "user" || turns[i].content == said[i].content);
  if (goes_on) return said.size();
  return turns.empty() ? 0 : turns.size() - 1;  // a new conversation, or the same question again
}

}  // namespace

ReplayChat::ReplayChat(const TraceLog& log, uint64_t& last_id) : origin_(replay_origin_of(log.reader().header())) {
  for (size_t i = 0; i < log.replies().size(); ++i) add(log, i, last_id);
  said_.clear();
}

void ReplayChat::add(const TraceLog& log, size_t index, uint64_t& last_id) {
  const TraceReply& recorded = log.reader().replies()[index];
  const ReplySummary& summary = log.replies()[index];
  Reply reply;
  reply.first_round = summary.first_round;
  reply.rounds = summary.rounds;
  std::vector<ChatTurn> turns = prompt_turns(recorded.begin.prompt, [&](uint32_t token) { return log.piece(token); });
  ReplyParameters& asked = reply.whole.parameters;
  if (!turns.empty() && turns.front().role == "system") {
    asked.system_prompt = std::move(turns.front().content);
    turns.erase(turns.begin());
  }
  for (size_t i = first_unsaid(turns, said_); i < turns.size(); ++i) {
    Message question;
    question.id = ++last_id;
    question.role = turns[i].role == "assistant" ? Role::assistant : Role::user;
    question.text = turns[i].content;
    reply.questions.push_back(std::move(question));
  }
  reply.whole.id = ++last_id;
  reply.whole.role = Role::assistant;
  asked.sampling = recorded.begin.sampling;
  asked.max_tokens = recorded.begin.max_tokens;
  asked.mode = summary.mode;
  asked.budget = summary.budget;
  asked.model = origin_.target;
  asked.device = origin_.device;
  if (asked.sampling.temperature > 0) reply.whole.seed = asked.sampling.seed;
  write(log, recorded, summary, reply);
  said_ = std::move(turns);
  said_.push_back({"assistant", reply.whole.text});
  replies_.push_back(std::move(reply));
}

/// Puts the text together from the tokens of the rounds, so that the round and node of each byte are known.
void ReplayChat::write(const TraceLog& log, const TraceReply& recorded, const ReplySummary& summary, Reply& reply) {
  Message& message = reply.whole;
  Writer writer(log, recorded.begin.prompt, message.text, recorded.end && !recorded.end->text.starts_with(' '));
  uint32_t begin = summary.first_token ? writer.push(*summary.first_token) : 0;
  reply.begin = begin;
  uint32_t emitted = 0;
  double ms = 0;
  for (size_t i = 0; i < summary.rounds; ++i) {
    const auto round = log.round(summary.first_round + i);
    if (!round) break;  // the file was changed after it was opened
    std::vector<uint32_t> ends;
    for (const uint32_t token : round->emitted) ends.push_back(writer.push(token));
    append_spans(message, *round, static_cast<uint32_t>(i), begin, ends);
    if (!ends.empty()) begin = ends.back();
    reply.ends.push_back(begin);
    emitted += static_cast<uint32_t>(round->emitted.size());
    ms += round->ms.total();
  }
  message.thought = writer.thought();
  // To what the user saw, where that is its beginning: a stop string ends the reply before its last token.
  if (recorded.end && message.text.starts_with(recorded.end->text)) cut_text(message, recorded.end->text.size());
  message.rounds = static_cast<uint32_t>(summary.rounds);
  message.tokens = emitted + 1;
  message.result = result_of(recorded, summary, emitted, ms);
  message.tokens_per_second = message.result->tokens_per_second;
}

Message ReplayChat::up_to(const Reply& reply, size_t round, bool told) const {
  const size_t rounds = round - reply.first_round + (told ? 1 : 0);  // of which the text is shown
  if (rounds >= reply.ends.size()) return reply.whole;
  Message message = reply.whole;
  const uint32_t end = rounds > 0 ? reply.ends[rounds - 1] : reply.begin;
  cut_text(message, end);
  std::erase_if(message.spans, [&](const TokenSpan& span) { return span.round >= rounds; });
  message.writing = true;
  message.result.reset();
  return message;
}

void ReplayChat::show(size_t round, bool told) {
  if ((round == shown_round_ && told == told_) || replies_.empty()) return;
  shown_round_ = round;
  told_ = told;
  size_t shown = 0;
  for (size_t i = 0; i < replies_.size(); ++i)
    if (replies_[i].rounds > 0 && replies_[i].first_round <= round) shown = i;
  if (shown == shown_reply_) {
    conversation_.back() = up_to(replies_[shown], round, told);
    return;
  }
  shown_reply_ = shown;
  conversation_.clear();
  for (size_t i = 0; i <= shown; ++i) {
    for (const Message& question : replies_[i].questions) conversation_.append(question);
    conversation_.append(i == shown ? up_to(replies_[i], round, told) : replies_[i].whole);
  }
  conversation_.system_prompt = replies_[shown].whole.parameters.system_prompt;
}

std::optional<size_t> ReplayChat::first_round(uint64_t message) const {
  for (const Reply& reply : replies_)
    if (reply.whole.id == message) return reply.first_round;
  return std::nullopt;
}

namespace {

constexpr double kDemoRoundMs = 600;

constexpr Demo kDemos[] = {
    {"Code", "A Python class, guessed in trees", "demos/code.canopytrace"},
    {"Prose", "A short explanation, guessed in trees", "demos/prose.canopytrace"},
    {"Records", "Records as JSON, guessed from the text alone", "demos/records.canopytrace"},
};

}  // namespace

std::span<const Demo> demos() {
  return kDemos;
}

void open_trace(ViewModel& view, const std::string& path) {
  try {
    const auto log = std::make_shared<TraceLog>(path);
    view.served.watched = 0;
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
  // Below what the slider has, where the machine was fast.
  const double mean_ms = log.statistics().ms().total() / static_cast<double>(log.rounds());
  playback.speed = std::max(0.001, mean_ms / kDemoRoundMs);
  toggle_pause(playback, log);
  show_tour_step(view);  // where the demo was opened for it
}

bool update(VerifyState& state, const Event& event) {
  if (const auto* done = std::get_if<RecordingVerified>(&event)) {
    // Also after a failure of something else, which looked like that of the check.
    if (done->path != state.path) return false;
    state.running = false;
    state.result = *done;
    return true;
  }
  if (!state.running) return false;
  if (const auto* progress = std::get_if<VerifyProgress>(&event)) {
    state.progress = *progress;
  } else if (const auto* failure = std::get_if<Failure>(&event)) {
    // A failure of a reply does not end a check that waits for that reply, but the loss of the device does.
    if (failure->reply_id == 0 || failure->kind == ErrorKind::device_lost) state.running = false;
  }
  return false;
}

std::optional<Command> update_verify(ViewModel& view, const VerifyCommand& command) {
  VerifyState& state = view.verify;
  if (std::holds_alternative<StopVerifying>(command))
    return state.running ? std::optional<Command>(CancelVerification{}) : std::nullopt;
  if (!verify_obstacle(view).empty()) return std::nullopt;
  state = {view.rounds.trace_path, true, {}, {}};
  return VerifyRecording{state.path};
}

std::string verify_obstacle(const ViewModel& view) {
  if (view.verify.running) return "A recording is being checked";
  if (view.rounds.trace_path.empty()) return "Open a recording first";
  if (view.model_state != ModelState::ready) return "Needs the model that the recording was made with";
  return "";
}

std::string verified_words(const RecordingVerified& result) {
  if (result.replies == 0)
    return "Nothing in the recording can be checked: it has no reply whose prompt and first token were recorded.";
  std::string words = result.difference.empty() ? "Checked here: the text is the one that plain decoding writes, " +
                                                      counted(result.replies, "reply", "replies") + ", " +
                                                      counted(result.tokens, "token", "tokens") + "."
                                                : result.difference;
  if (result.skipped > 0) words += " " + counted(result.skipped, "reply was", "replies were") + " not checked.";
  if (!result.recorded_on.empty()) words += " It was recorded on " + printable(result.recorded_on) + ".";
  return words;
}

float ShareState::fraction() const {
  if (!running || total == 0) return -1;
  return std::clamp(static_cast<float>(done) / static_cast<float>(total), 0.0f, 1.0f);
}

ShareWish update(ShareState& state, const ShareCommand& command, bool possible) {
  if (const auto* show = std::get_if<ShowShare>(&command)) {
    state.box_shown = show->shown && (possible || state.running);
  } else if (const auto* choose = std::get_if<ChooseShare>(&command)) {
    if (state.running) return {};
    state.kind = choose->kind;
    state.saved.clear();
    state.problem.clear();
  } else if (const auto* start = std::get_if<StartShare>(&command)) {
    if (!possible || state.running || start->path.empty()) return {};
    state.kind = start->kind;
    state.running = true;
    state.done = state.total = 0;
    state.saved.clear();
    state.problem.clear();
    std::filesystem::path path = typed_path(start->path);
    if (path.extension() != ending_of(start->kind)) path += ending_of(start->kind);
    return {StartShare{start->kind, path.string()}, false};
  } else if (std::holds_alternative<StopShare>(command)) {
    return {{}, state.running};
  }
  return {};
}

void share_progress(ShareState& state, size_t done, size_t total) {
  state.done = done;
  state.total = total;
}

void end_share(ShareState& state, const std::string& path, const std::string& problem) {
  state.running = false;
  state.done = state.total = 0;
  state.saved = path;
  state.problem = problem;
}

const char* ending_of(ShareKind kind) {
  return kind == ShareKind::page ? ".html" : kind == ShareKind::png ? ".png" : ".svg";
}

std::string share_name(ShareKind kind, size_t round, const std::string& recording) {
  // A name has 255 bytes at most, the ending and the number included.
  constexpr size_t most_bytes = 200;
  std::string name = std::filesystem::path(recording).stem().string();
  size_t end = std::min(name.size(), most_bytes);
  while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  name.resize(end);
  if (name.empty()) name = kind == ShareKind::page ? "reply" : "pass";
  if (!name.starts_with("canopy")) name = "canopy-" + name;
  if (kind == ShareKind::animation) name += "-moving";
  if (kind != ShareKind::page) name += "-" + std::to_string(round + 1);
  return name + ending_of(kind);
}

}  // namespace canopy::app
