#include "app/state/served.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/state/chat_update.h"
#include "app/state/rounds.h"
#include "app/state/view_model.h"
#include "app/state/words.h"

namespace canopy::app {
namespace {

bool is_role(const std::string& role, std::string_view name) {
  return role == name;
}

/// What a turn says: calls of tools are fields beside its text.
std::string said_in(const ChatTurn& turn) {
  std::string said = turn.content;
  for (const std::string& part : turn.parts)
    if (turn.content.empty()) said += part;
  if (said.empty()) said = turn.fields;
  const bool usual = is_role(turn.role, "user") || is_role(turn.role, "assistant");
  return usual ? said : turn.role + ": " + said;
}

ReplyParameters parameters_asked(const ViewModel& view, const Generate& asked, const std::string& system_prompt) {
  ReplyParameters p;
  p.sampling = asked.sampling;
  p.max_tokens = asked.max_tokens;
  p.mode = asked.mode;
  p.budget = asked.budget;
  p.system_prompt = system_prompt;
  p.thinking = asked.thinking;
  if (!view.model) return p;
  p.model = model_title(*view.model);
  p.device = view.model->device;
  return p;
}

/// The prompt as a conversation, with the reply that is about to be written.
Conversation chat_asked(ViewModel& view, const Generate& asked) {
  Conversation chat;
  chat.created_ms = view.chat.now_ms;
  const auto add = [&](Role role, std::string text) {
    Message message;
    message.id = ++view.last_id;
    message.role = role;
    message.text = std::move(text);
    message.created_ms = view.chat.now_ms;
    chat.append(std::move(message));
  };
  for (const ChatTurn& turn : asked.turns) {
    if (is_role(turn.role, "system") || is_role(turn.role, "developer"))
      chat.system_prompt += (chat.system_prompt.empty() ? "" : "\n\n") + turn.content;
    else
      add(is_role(turn.role, "assistant") ? Role::assistant : Role::user, said_in(turn));
  }
  if (chat.empty()) add(Role::user, asked.raw_prompt);
  Message reply;
  reply.id = asked.reply_id;
  reply.role = Role::assistant;
  reply.created_ms = view.chat.now_ms;
  reply.writing = true;
  if (asked.sampling.temperature > 0) reply.seed = asked.sampling.seed;
  reply.parameters = parameters_asked(view, asked, chat.system_prompt);
  reply.begins_thinking = !asked.turns.empty() && view.model && view.model->thinking.opened(asked.thinking);
  chat.append(std::move(reply));
  return chat;
}

/// Takes the oldest replies that are over off the list where it is too long.
void limit_served(ServedState& state) {
  for (size_t i = state.replies.size(); i-- > 0 && state.replies.size() > kMostServed;)
    if (state.replies[i].over && state.replies[i].id() != state.watched)
      state.replies.erase(state.replies.begin() + static_cast<std::ptrdiff_t>(i));
}

void on_served_begun(ViewModel& view, const ServedBegun& event) {
  ServedReply reply;
  reply.asked = event.asked;
  reply.client = event.client;
  reply.path = event.path;
  reply.chat = chat_asked(view, event.asked);
  reply.log = std::make_shared<LiveLog>(kServedMemory);
  if (view.model) reply.log->take(*view.model);
  reply.log->expect(event.asked);
  // The turns are in the chat, and may be long.
  reply.asked.turns.clear();
  reply.asked.raw_prompt.clear();
  view.served.replies.insert(view.served.replies.begin(), std::move(reply));
  limit_served(view.served);
}

void end_served(ServedReply& reply, const ReplyFinished& ending) {
  Message& message = reply.chat.back();
  message.writing = false;
  message.tokens = ending.reply_tokens;
  message.tokens_per_second = ending.tokens_per_second;
  message.result = ending;
  reply.over = true;
  reply.reading = reply.paused = reply.stopping = false;
}

/// Ends a reply without figures. problem: why it failed; empty: it was stopped.
void break_off(ServedReply& reply, const std::string& problem) {
  if (reply.over) return;
  ReplyFinished ending;
  ending.reply_id = reply.id();
  ending.reason = problem.empty() ? FinishReason::cancelled : FinishReason::failed;
  ending.reply_tokens = reply.reply().tokens;
  ending.tokens_per_second = reply.reply().tokens_per_second;
  if (reply.asked.mode) ending.mode = *reply.asked.mode;
  reply.log->take(ending);
  end_served(reply, ending);
  reply.problem = problem;
}

/// Notes when how many tokens were there.
void count_written(ServedState& state, int64_t now_ms, uint32_t more) {
  state.tokens += more;
  auto& written = state.written;
  if (!written.empty() && now_ms - written.back().first > kServedSpeedMs) written.clear();  // a break
  written.emplace_back(now_ms, state.tokens);
  while (written.size() > 2 && now_ms - written.front().first > kServedSpeedMs) written.pop_front();
}

void on_reply_event(ViewModel& view, ServedReply& reply, const Event& event) {
  if (reply.over) return;
  reply.log->take(event);
  if (const auto* prompt = std::get_if<PrefillProgress>(&event)) {
    reply.prompt_done = prompt->done;
    reply.prompt_total = prompt->total;
  } else if (std::holds_alternative<ReplyStarted>(event)) {
    reply.reading = false;
  } else if (const auto* text = std::get_if<TextDelta>(&event)) {
    const uint32_t before = reply.reply().tokens;
    reply.reading = false;
    add_text(reply.chat.back(), *text);
    count_written(view.served, view.chat.now_ms, text->reply_tokens - std::min(before, text->reply_tokens));
  } else if (const auto* round = std::get_if<RoundFinished>(&event)) {
    add_round(reply.chat.back(), *round);
  } else if (const auto* finished = std::get_if<ReplyFinished>(&event)) {
    end_served(reply, *finished);
  } else if (const auto* failure = std::get_if<Failure>(&event)) {
    break_off(reply, failure->kind == ErrorKind::cancelled ? "" : failure->detail);
  }
}

/// The reply that an event is of; 0: of none.
uint64_t reply_of_event(const Event& event) {
  return std::visit(
      [](const auto& e) -> uint64_t {
        if constexpr (requires { e.reply_id; })
          return e.reply_id;
        else
          return 0;
      },
      event);
}

void on_serving(ViewModel& view, const Serving& event) {
  ServedState& state = view.served;
  state.told = event;
  if (!event.active)
    for (ServedReply& each : state.replies) break_off(each, "The model is no longer served.");
  // The box says it where it is open.
  if (!event.problem.empty() && !state.box_shown) warn(view, "The model is not served", event.problem);
}

void on_served_recorded(ViewModel& view, const ServedRecorded& event) {
  ServedReply* reply = view.served.find(event.reply_id);
  if (reply != nullptr) {
    reply->recorded = event.problem.empty();
    reply->recording = event.problem.empty() ? event.path : "";
  }
  if (event.problem.empty())
    view.chat.note = "Recorded " + file_name(event.path);
  else
    warn(view, "The served reply was not recorded", event.problem);
}

Serve wish_of(const ServedState& state) {
  const ServeSettings& s = state.settings;
  return {s.host, static_cast<uint16_t>(s.port), state.key, s.hosts, s.origins};
}

Effects for_engine(Command command) {
  Effects effects;
  effects.engine.push_back(std::move(command));
  return effects;
}

Effects switch_serving(ViewModel& view, bool on) {
  ServedState& state = view.served;
  if (on == state.on() && on == state.settings.on) return {};
  state.settings.on = on;
  state.told.problem.clear();
  if (!on) return for_engine(StopServing{});
  view.shell.chat_list_usual = true;  // where its replies are listed
  Effects effects = for_engine(wish_of(state));
  if (view.model_state != ModelState::released || !view.idle.opened) return effects;
  begin_load(view, view.idle.opened->path);  // clients cannot bring it back by themselves
  effects.engine.push_back(*view.idle.opened);
  return effects;
}

void change_serving(ServedState& state, const ChangeServing& wanted) {
  if (state.on()) return;
  const bool on = state.settings.on;
  state.settings = wanted.settings;
  state.settings.on = on;
  state.settings.port = std::min(state.settings.port, kMostPort);
  state.key = wanted.key;
}

void watch_served(ViewModel& view, uint64_t id) {
  const ServedReply* reply = view.served.find(id);
  if (reply == nullptr) return leave_served(view);
  view.served.watched = id;
  view.shell.page = WindowPage::rounds;
  view.shell.welcome = false;
  show_live(view.rounds, reply->log);
}

Effects end_wanted(ServedReply& reply) {
  if (reply.over || reply.stopping) return {};
  reply.stopping = true;
  return for_engine(StopServed{reply.id()});
}

Effects hold(ServedReply& reply, bool held) {
  if (reply.over || reply.paused == held) return {};
  reply.paused = held;
  return for_engine(PauseServed{reply.id(), held});
}

Effects tape(ViewModel& view, ServedReply& reply) {
  if (!reply.recording.empty()) return {};
  if (view.recording.suggested.empty()) {
    warn(view, "The served reply was not recorded", "There is no folder for recordings.");
    return {};
  }
  // Several may be recorded within one second.
  const std::filesystem::path suggested = view.recording.suggested;
  const std::string name = suggested.stem().string() + "-served-" + std::to_string(reply.id() & 0xffffffff);
  reply.recording = (suggested.parent_path() / (name + suggested.extension().string())).string();
  return for_engine(RecordServed{reply.id(), reply.recording});
}

void drop(ViewModel& view, uint64_t id) {
  if (const ServedReply* reply = view.served.find(id); reply == nullptr || !reply->over) return;
  if (view.served.watched == id) leave_served(view);
  std::erase_if(view.served.replies, [&](const ServedReply& each) { return each.id() == id; });
}

Effects keep_served(ViewModel& view, uint64_t id) {
  ServedReply* reply = view.served.find(id);
  if (reply == nullptr || !reply->over) return {};
  const std::shared_ptr<LiveLog> log = reply->log;
  Conversation chat = std::move(reply->chat);
  const bool earlier = reply->earlier_model;
  std::erase_if(view.served.replies, [&](const ServedReply& each) { return each.id() == id; });
  leave_served(view);
  Effects effects = show_conversation(view, std::move(chat));
  view.rounds.live = log;
  view.ar.first_round = earlier ? log->rounds() : 0;
  show_live(view.rounds, log);
  return effects;
}

std::string tokens_words(const Message& reply) {
  const std::string tokens = counted(reply.tokens, "token", "tokens");
  return reply.tokens_per_second > 0 ? tokens + ", " + speed(reply.tokens_per_second) + " tok/s" : tokens;
}

}  // namespace

size_t ServedState::under_way() const {
  const auto running = std::ranges::count_if(replies, [](const ServedReply& each) { return !each.over; });
  return static_cast<size_t>(running) + told.waiting;
}

const ServedReply* ServedState::find(uint64_t id) const {
  const auto found = std::ranges::find_if(replies, [&](const ServedReply& each) { return each.id() == id; });
  return found == replies.end() ? nullptr : &*found;
}

ServedReply* ServedState::find(uint64_t id) {
  return const_cast<ServedReply*>(std::as_const(*this).find(id));
}

bool update_served(ViewModel& view, const Event& event) {
  if (const auto* serving = std::get_if<Serving>(&event)) return on_serving(view, *serving), true;
  if (const auto* begun = std::get_if<ServedBegun>(&event)) return on_served_begun(view, *begun), true;
  if (const auto* recorded = std::get_if<ServedRecorded>(&event)) return on_served_recorded(view, *recorded), true;
  const uint64_t id = reply_of_event(event);
  if (id < kFirstServedReply) return false;
  note_ar(view, event);
  if (ServedReply* reply = view.served.find(id)) on_reply_event(view, *reply, event);
  if (view.served.watched == id) advance(view.rounds, 0);
  return true;
}

Effects update_served(ViewModel& view, const ServedCommand& command) {
  ServedState& state = view.served;
  const auto with = [&](uint64_t id, const auto& then) {
    ServedReply* reply = state.find(id);
    return reply != nullptr ? then(*reply) : Effects{};
  };
  return std::visit(
      Cases{
          [&](const ShowServing& c) { return state.box_shown = c.shown, Effects{}; },
          [&](const SwitchServing& c) { return switch_serving(view, c.on); },
          [&](const ChangeServing& c) { return change_serving(state, c), Effects{}; },
          [&](const WatchServed& c) { return watch_served(view, c.id), Effects{}; },
          [&](const EndServed& c) { return with(c.id, end_wanted); },
          [&](const HoldServed& c) { return with(c.id, [&](ServedReply& reply) { return hold(reply, c.held); }); },
          [&](const TapeServed& c) { return with(c.id, [&](ServedReply& reply) { return tape(view, reply); }); },
          [&](const KeepServed& c) { return keep_served(view, c.id); },
          [&](const DropServed& c) { return drop(view, c.id), Effects{}; },
      },
      command);
}

std::vector<Command> begin_serving(const ServedState& state) {
  if (!state.on()) return {};
  return {wish_of(state)};
}

void leave_served(ViewModel& view) {
  if (std::exchange(view.served.watched, 0) != 0) show_live(view.rounds, view.rounds.live);
}

void age_served(ServedState& state) {
  for (ServedReply& each : state.replies) each.earlier_model = true;
}

double served_speed(const ServedState& state, int64_t now_ms) {
  const auto writes = [](const ServedReply& each) { return !each.over && !each.reading && !each.paused; };
  if (state.written.size() < 2 || !std::ranges::any_of(state.replies, writes)) return 0;
  const auto& [first_ms, first] = state.written.front();
  const auto& [last_ms, last] = state.written.back();
  if (now_ms - last_ms > kServedSpeedMs || last_ms <= first_ms) return 0;
  return 1000.0 * static_cast<double>(last - first) / static_cast<double>(last_ms - first_ms);
}

std::string served_address(const ServedState& state) {
  constexpr std::string_view scheme = "http://", version = "/v1";
  std::string_view url = state.told.url;
  if (url.starts_with(scheme)) url.remove_prefix(scheme.size());
  if (url.ends_with(version)) url.remove_suffix(version.size());
  return std::string(url);
}

std::string serving_words(const ViewModel& view) {
  const ServedState& state = view.served;
  if (!state.told.problem.empty()) return state.told.problem;
  if (!state.told.active && !state.settings.on) return "Off";
  const bool elsewhere = view.model && !view.model->server.empty();
  if (!state.told.active)
    return elsewhere ? "Begins when a model of this machine is loaded" : "Begins when a model is loaded";
  std::string words = served_address(state) + ", " + counted(state.under_way(), "request", "requests");
  const double tokens = served_speed(state, view.chat.now_ms);
  return tokens > 0 ? words + ", " + speed(tokens) + " tok/s" : words;
}

std::string served_words(const ServedReply& reply) {
  const Message& message = reply.reply();
  if (!reply.over && reply.stopping) return "stopping";
  if (!reply.over && reply.paused) return "paused, " + counted(message.tokens, "token", "tokens");
  if (!reply.over && reply.reading) {
    if (reply.prompt_total == 0) return "reading";
    return "reading, " + percent(static_cast<double>(reply.prompt_done) / reply.prompt_total, 0);
  }
  if (!reply.over) return tokens_words(message);
  const FinishReason reason = message.result ? message.result->reason : FinishReason::failed;
  if (reason == FinishReason::failed) return "failed";
  if (reason == FinishReason::cancelled) return "ended after " + counted(message.tokens, "token", "tokens");
  return tokens_words(message);
}

std::string served_title(const ServedReply& reply) {
  std::string title;
  for (const Message& message : reply.chat)
    if (message.role == Role::user) title = first_line(message.text);
  return title.empty() ? "(nothing)" : title;
}

std::vector<std::string> listed_names(const std::string& text) {
  std::vector<std::string> names;
  constexpr std::string_view between = " ,;\t\r\n";
  for (size_t at = text.find_first_not_of(between); at != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(between, at), text.size());
    names.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(between, end);
  }
  return names;
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace canopy::app
