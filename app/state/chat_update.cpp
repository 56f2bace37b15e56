#include "app/state/chat_update.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "app/state/conversation.h"
#include "app/state/view_model.h"
#include "app/state/words.h"
#include "engine/base/error.h"

namespace canopy::app {

bool is_chosen(const ViewModel& view, DecodeMode mode) {
  return view.drafting == mode || (mode == DecodeMode::tree && view.shell.tree_budget != kShownBudget);
}

TreeSetBy tree_set_by(const ViewModel& view, const RoundRecord& round, size_t reply) {
  if (round.mode == DecodeMode::adaptive) return TreeSetBy::controller;
  const RoundLog& log = *view.rounds.log;
  if (!log.is_live()) return TreeSetBy::recording;
  if (view.served.watched != 0) return TreeSetBy::client;
  for (const Conversation::Node& node : view.messages.nodes()) {
    if (node.message.id != log.replies()[reply].message || !node.message.parameters.mode_chosen) continue;
    return *node.message.parameters.mode_chosen ? TreeSetBy::user : TreeSetBy::fallback;
  }
  return TreeSetBy::recording;  // of an earlier day
}

const char* mode_title(DecodeMode mode) {
  switch (mode) {
    case DecodeMode::ar: return "Plain";
    case DecodeMode::chain: return "Chain";
    case DecodeMode::tree: return "Tree";
    case DecodeMode::adaptive: return "Adaptive";
  }
  return "";
}

const char* mode_detail(DecodeMode mode) {
  switch (mode) {
    case DecodeMode::ar: return "Plain decoding: one token a pass, no guesses";
    case DecodeMode::chain: return "The likeliest line of guesses, checked in one pass";
    case DecodeMode::tree: return "A tree of guesses of a fixed size, checked in one pass";
    case DecodeMode::adaptive: return "In each pass as many guesses as are fastest here (BASTION)";
  }
  return "";
}

void set_drafting(ViewModel& view, const std::optional<DecodeMode>& mode) {
  if (mode == DecodeMode::ar && view.drafting != DecodeMode::ar) view.guessed_as = view.drafting;
  view.drafting = mode;
}

bool is_guessing(const ViewModel& view) {
  return view.drafting != DecodeMode::ar;
}

void set_guessing(ViewModel& view, bool on) {
  if (on != is_guessing(view)) set_drafting(view, on ? view.guessed_as : DecodeMode::ar);
}

namespace {

/// Bytes that a message takes in a prompt; tokens are in proportion, near enough to decide how many turns to drop.
size_t bytes_of(const Message& message) {
  size_t bytes = message.text.size();
  for (const Attachment& each : message.attachments) bytes += each.name.size() + each.text.size();
  return bytes;
}

size_t bytes_from(const Conversation& chat, size_t first) {
  size_t bytes = chat.system_prompt.size();
  for (size_t i = first; i < chat.size(); ++i) bytes += bytes_of(chat[i]);
  return bytes;
}

constexpr const char* kContextIsFull = "The context is full";

/// About how many of a prompt's tokens its last question takes; 0 where the prompt was not counted.
uint32_t tokens_of_last_question(const Conversation& chat, uint32_t prompt_tokens) {
  const auto all = static_cast<double>(std::max<size_t>(1, bytes_from(chat, chat.unsent())));
  for (size_t i = chat.size(); i-- > 0;)
    if (chat[i].role == Role::user)
      return static_cast<uint32_t>(prompt_tokens * (static_cast<double>(bytes_of(chat[i])) / all));
  return 0;
}

/// The next question after message i; the number of messages where there is none.
size_t question_after(const Conversation& chat, size_t i) {
  for (++i; i < chat.size(); ++i)
    if (chat[i].role == Role::user) return i;
  return chat.size();
}

}  // namespace

uint32_t about_tokens(std::string_view text) {
  constexpr size_t kAsciiBytes = 4, kOtherBytes = 3;  // a token, in most texts and vocabularies
  size_t other = 0;
  for (const char c : text) other += static_cast<unsigned char>(c) >= 0x80 ? 1 : 0;
  const size_t tokens = (text.size() - other + kAsciiBytes - 1) / kAsciiBytes + (other + kOtherBytes - 1) / kOtherBytes;
  return static_cast<uint32_t>(std::min<size_t>(tokens, UINT32_MAX / 4));
}

std::string too_long_alone(const ContextUse& use) {
  if (use.planned == 0 || use.waiting + use.draft <= use.planned) return "";
  return "This question alone takes about " + grouped(use.waiting + use.draft) + " tokens; the model can see " +
         grouped(use.planned) + " at once here. Shorten it.";
}

ContextUse context_use(const ViewModel& view, std::string_view draft) {
  ContextUse use;
  use.planned = view.model ? view.model->context : 0;
  use.used = view.context_used;
  const Conversation& chat = view.messages;
  // Of a chat that was just opened: what it took when its last reply was written.
  for (size_t i = chat.size(); use.used == 0 && i-- > chat.unsent();)
    if (chat[i].result) use.used = chat[i].result->context_used;
  for (const Attachment& each : view.chat.attachments) use.waiting += each.tokens;
  use.draft = about_tokens(draft);
  return use;
}

std::string context_words(const ContextUse& use) {
  if (use.planned == 0) return "How much of the context this chat takes: needs a model";
  std::string words = "This chat takes " + grouped(use.used) + " of " + grouped(use.planned) +
                      " tokens, the most that the model can see at once here";
  if (use.waiting > 0) words += "\nThe attached files will take about " + grouped(use.waiting) + " more";
  if (use.draft > 0) words += "\nWhat you are writing will take about " + grouped(use.draft) + " more";
  if (const std::string alone = too_long_alone(use); !alone.empty()) return words + "\n" + alone;
  if (use.nearly_full()) words += "\nWhen it is full you can drop the oldest turns, or stop";
  return words;
}

bool can_drop_turns(const ViewModel& view) {
  const Conversation& chat = view.messages;
  return !chat.empty() && question_after(chat, chat.unsent()) < chat.size();
}

bool drop_oldest_turns(ViewModel& view) {
  Conversation& chat = view.messages;
  if (view.busy() || !can_drop_turns(view)) return false;
  const ContextUse use = context_use(view);
  const double all = static_cast<double>(std::max<size_t>(1, bytes_from(chat, chat.unsent())));
  const auto left = [&](size_t from) {
    const uint32_t known = use.used > 0 ? use.used : use.planned;
    return static_cast<uint32_t>(known * (static_cast<double>(bytes_from(chat, from)) / all));
  };
  size_t from = question_after(chat, chat.unsent());
  while (left(from) > use.planned / 2 && question_after(chat, from) < chat.size()) from = question_after(chat, from);
  const uint32_t tokens = left(from);
  chat.left_out = static_cast<uint32_t>(from);
  view.context_used = tokens;
  std::erase_if(view.cards, [](const Card& c) { return c.title == kContextIsFull; });
  return chat.back().failed_unsaid() || chat.back().role == Role::user;
}

void say_context_is_full(ViewModel& view, uint32_t prompt_tokens) {
  const std::string planned = view.model ? grouped(view.model->context) : "all";
  const std::string fact = prompt_tokens > 0 ? "The chat with this question takes " + grouped(prompt_tokens) +
                                                   " tokens; the model can see " + planned + " at once here."
                                             : "The reply ended where the chat filled all " + planned +
                                                   " tokens that the model can see at once here.";
  Card card{++view.last_id, true, kContextIsFull, "", Card::Action::drop_oldest};
  const uint32_t alone = tokens_of_last_question(view.messages, prompt_tokens);
  if (view.model && alone > view.model->context) {
    card.action = Card::Action::none;
    card.detail = "This question alone takes about " + grouped(alone) + " tokens; the model can see " + planned +
                  " at once here. Shorten it with the pen beside it, or begin a new chat.";
  } else if (can_drop_turns(view)) {
    card.detail = fact + " Drop the oldest turns to go on: they stay here and on the disk, and the model no longer " +
                  "sees them. Or stop here.";
  } else {
    card.action = Card::Action::none;
    card.detail = fact + " There are no older turns to drop: shorten the question, or begin a new chat.";
  }
  std::erase_if(view.cards, [&](const Card& c) { return c.title == card.title; });
  view.cards.push_back(std::move(card));
}

std::vector<Command> take_count_requests(ViewModel& view) {
  std::vector<Command> wanted;
  if (view.model_state != ModelState::ready || !view.model) return wanted;
  for (Attachment& each : view.chat.attachments) {
    if (each.id != 0 && each.vocabulary == view.model->vocabulary) continue;
    each.id = ++view.last_id;
    each.tokens = 0;
    each.vocabulary = view.model->vocabulary;
    wanted.emplace_back(CountTokens{each.id, fenced(each)});
  }
  return wanted;
}

void take_count(ViewModel& view, const TokensCounted& event) {
  for (Attachment& each : view.chat.attachments) {
    if (each.id != event.id) continue;
    each.tokens = event.tokens;
    if (event.vocabulary != 0) each.vocabulary = event.vocabulary;
  }
}

bool is_unfinished(const ViewModel& view, size_t i) {
  if (!view.own_chat() || i + 1 != view.messages.size()) return false;
  const Message& message = view.messages[i];
  if (message.role != Role::assistant || message.writing || !message.result || message.text.empty()) return false;
  const FinishReason reason = message.result->reason;
  return reason == FinishReason::max_tokens || reason == FinishReason::cancelled || reason == FinishReason::repeats;
}

std::string continue_obstacle(const ViewModel& view, const Message& reply) {
  if (!reply.result || reply.result->tokens.ids.empty())
    return "The tokens of this reply are not known: they are not kept with it.";
  if (!view.can_send()) return "Needs a model that is idle.";
  if (view.model->vocabulary != reply.result->tokens.vocabulary || model_title(*view.model) != reply.parameters.model)
    return "Another model is open than the one that wrote this reply" +
           (reply.parameters.model.empty() ? std::string() : ", " + reply.parameters.model) + ".";
  if (reply.result->context_used >= view.model->context) return "The context is full.";
  return "";
}

namespace {

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

ReplyParameters parameters_of(const ViewModel& view, const Generate& command) {
  ReplyParameters p;
  p.sampling = command.sampling;
  p.max_tokens = command.max_tokens;
  p.mode = command.mode;
  if (command.mode) p.mode_chosen = is_chosen(view, *command.mode);
  p.budget = command.budget;
  p.system_prompt = view.messages.system_prompt;
  p.thinking = command.thinking;
  p.left_out = static_cast<uint32_t>(view.messages.unsent());
  if (view.model) {
    p.model = model_title(*view.model);
    p.device = view.model->device;
  }
  return p;
}

/// Takes away what was said about replies that are over.
void forget_cards_of_replies(ViewModel& view) {
  std::erase_if(view.cards,
                [](const Card& c) { return c.action == Card::Action::run_again || c.title == kContextIsFull; });
}

/// Completes a request by how it is drafted now, and makes the view wait for its reply.
void begin_reading(ViewModel& view, Generate& command) {
  if (view.model) command.mode = view.drafting.value_or(kUsualMode);
  command.budget = view.shell.tree_budget;
  command.sources = view.draft_sources;
  command.stop_loops = view.stop_loops;
  view.reply_id = command.reply_id;
  view.reply_state = ReplyState::reading_prompt;
  view.prompt = {};
  forget_cards_of_replies(view);
  update(view.rounds, FollowRounds{});  // who asks wants to see the answer come
}

/// The option on thinking for the next reply: none where the model's template does not ask for it.
std::optional<bool> thinking_asked(const ViewModel& view) {
  return view.model && view.model->thinking.switchable ? view.thinking : std::nullopt;
}

Effects continue_reply(ViewModel& view, uint64_t id) {
  const size_t i = view.messages.find(id);
  if (i == view.messages.size() || !is_unfinished(view, i) || !continue_obstacle(view, view.messages[i]).empty())
    return {};
  Message& message = view.messages.back();
  const ReplyParameters& asked = message.parameters;
  Generate command;
  command.reply_id = ++view.last_id;
  command.turns = turns_before(view.messages, i, asked.system_prompt, asked.left_out);
  command.thinking = asked.thinking;
  command.sampling = asked.sampling;
  command.max_tokens = view.max_tokens;
  command.begun = message.result->tokens;
  begin_reading(view, command);
  begin_tokens(message, message.result->tokens);
  message.before = std::exchange(message.result, std::nullopt);
  message.writing = true;
  Effects effects;
  effects.engine.push_back(std::move(command));
  return effects;
}

/// The engine goes on: what does not stand of the text is taken away, and the part begins.
void on_continued(Message& message, const ReplyStarted& event) {
  cut_text(message, event.begun_bytes);
  message.continued.push_back({event.reply_id, message.rounds, static_cast<uint32_t>(message.text.size())});
}

/// The ending of the whole reply, from that of its last part and how it had ended before (Message::before).
ReplyFinished whole_ending(const Message& message, const ReplyFinished& part) {
  if (!message.before) return part;
  const ReplyFinished& before = *message.before;
  const double first = message.continued.empty() ? message.rounds : message.continued.back().first_round;
  const double rest = message.rounds - first;
  const double emitted = before.tau * first + part.tau * rest;
  ReplyFinished whole = part;
  whole.prompt_tokens = before.prompt_tokens;
  whole.reused_tokens = before.reused_tokens;
  whole.prefill_ms = before.prefill_ms;
  whole.decode_ms = before.decode_ms + part.decode_ms;
  whole.tau = message.rounds > 0 ? emitted / message.rounds : 0;
  whole.tokens_per_second = whole.decode_ms > 0 ? 1000.0 * emitted / whole.decode_ms : 0;
  if (!part.plain.known()) whole.plain = before.plain;
  // What drafted a part of it has drafted it.
  if (part.mode == DecodeMode::ar) whole.mode = before.mode;
  return whole;
}

Effects begin_reply(ViewModel& view) {
  Generate command;
  command.turns =
      turns_before(view.messages, view.messages.size(), view.messages.system_prompt, view.messages.unsent());
  command.thinking = thinking_asked(view);
  command.max_tokens = view.max_tokens;
  command.sampling = view.sampling;
  command.sampling.seed += view.replies_drawn;
  Message message;
  message.id = command.reply_id = ++view.last_id;
  begin_reading(view, command);
  message.role = Role::assistant;
  message.created_ms = view.chat.now_ms;
  message.writing = true;
  if (view.sampling.temperature > 0) {
    message.seed = command.sampling.seed;
    ++view.replies_drawn;
  }
  message.parameters = parameters_of(view, command);
  message.begins_thinking = view.model && view.model->thinking.opened(command.thinking);
  if (view.model) message.so_far.vocabulary = view.model->vocabulary;
  view.messages.append(std::move(message));
  Effects effects;
  effects.engine.push_back(std::move(command));
  return effects;
}

void append_question(ViewModel& view, const std::string& text, std::vector<Attachment> attachments) {
  if (view.messages.created_ms == 0) view.messages.created_ms = view.chat.now_ms;
  Message message;
  message.id = ++view.last_id;
  message.text = text;
  message.attachments = std::move(attachments);
  message.created_ms = view.chat.now_ms;
  view.messages.append(std::move(message));
}

Effects edit_question(ViewModel& view, const EditQuestion& c) {
  const size_t i = view.messages.find(c.message);
  if (!view.can_send() || i == view.messages.size() || is_blank(c.text)) return {};
  if (view.messages[i].role != Role::user) return {};
  std::vector<Attachment> files = view.messages[i].attachments;
  view.messages.cut(i);
  append_question(view, c.text, std::move(files));
  return begin_reply(view);
}

Effects answer_again(ViewModel& view, uint64_t message) {
  const size_t i = view.messages.find(message);
  if (!view.can_send() || i == view.messages.size() || view.messages[i].role != Role::assistant) return {};
  view.messages.cut(i);
  return begin_reply(view);
}

void show_alternative(ViewModel& view, const ShowAlternative& c) {
  if (view.busy()) return;
  view.messages.show_alternative(view.messages.find(c.message), c.by);
  show_rounds_of_branch(view);
  forget_cards_of_replies(view);
  view.context_used = 0;
}

void update_prompts(ViewModel& view, const ChatCommand& command) {
  try {
    if (const auto* save = std::get_if<SavePrompt>(&command)) save_prompt(view.chat.prompts, save->name, save->text);
    if (const auto* name = std::get_if<RenamePrompt>(&command)) rename_prompt(view.chat.prompts, name->from, name->to);
    if (const auto* gone = std::get_if<DeletePrompt>(&command)) delete_prompt(view.chat.prompts, gone->name);
  } catch (const Error& e) {
    warn(view, "The system prompts stay as they were", e.what());
  }
}

Effects continue_in_new_chat(ViewModel& view, uint64_t message) {
  const size_t i = view.messages.find(message);
  if (view.busy() || i == view.messages.size()) return {};
  Conversation copy = view.messages.copy_of_path(i + 1);
  copy.created_ms = view.chat.now_ms;
  return show_conversation(view, std::move(copy));
}

/// A reply in a later prompt. Thinking that has tags is the template's to find; other thinking goes beside the answer.
ChatTurn turn_of_reply(const Message& message) {
  ChatTurn turn{"assistant", message.text, message.result ? message.result->tokens : TurnTokens()};
  if (!message.thought.told_apart) return turn;
  turn.content = answer_of(message);
  turn.thinking = thought_of(message);
  return turn;
}

}  // namespace

std::vector<ChatTurn> turns_before(const Conversation& conversation, size_t length, const std::string& system_prompt,
                                   size_t left_out) {
  std::vector<ChatTurn> turns;
  for (size_t i = left_out; i < length; ++i) {
    const Message& message = conversation[i];
    if (message.failed_unsaid()) {
      if (!turns.empty() && turns.back().role == "user") turns.pop_back();
      continue;
    }
    if (message.role == Role::user)
      turns.push_back({"user", question_with_files(message)});
    else
      turns.push_back(turn_of_reply(message));
  }
  if (!is_blank(system_prompt)) turns.insert(turns.begin(), {"system", system_prompt});
  return turns;
}

void on_started(ViewModel& view, const ReplyStarted& e) {
  Message& message = view.messages.back();
  if (message.before) on_continued(message, e);
  message.so_far.ids.push_back(e.first_token);
}

void on_text(ViewModel& view, const TextDelta& e) {
  if (view.reply_state == ReplyState::reading_prompt) view.reply_state = ReplyState::writing;
  add_text(view.messages.back(), e);
  view.context_used = e.context_used;
}

void add_text(Message& message, const TextDelta& e) {
  message.text += e.text;
  message.thought = e.thought;
  message.tokens = e.reply_tokens;
  message.tokens_per_second = e.tokens_per_second;
}

void on_round(ViewModel& view, const RoundFinished& e) {
  add_round(view.messages.back(), e);
}

void add_round(Message& message, const RoundFinished& e) {
  if (!e.round) return;
  const RoundRecord& record = *e.round;
  const uint32_t round = record.round + (message.continued.empty() ? 0 : message.continued.back().first_round);
  message.rounds = std::max(message.rounds, round + 1);
  std::vector<uint32_t>& ids = message.so_far.ids;
  if (!ids.empty() && e.first_index == ids.size()) ids.insert(ids.end(), record.emitted.begin(), record.emitted.end());
  // Of a message that began without them the tokens are not known.
  if (message.continued.empty() || !message.spans.empty())
    append_spans(message, record, round, e.text_begin, e.text_ends);
}

void on_finished(ViewModel& view, const ReplyFinished& e) {
  Message& message = view.messages.back();
  message.writing = false;
  message.tokens = e.reply_tokens;
  message.tokens_per_second = e.tokens_per_second;
  message.result = whole_ending(message, e);
  message.before.reset();
  message.so_far = {};
  // What charts of an opened chat compare with: the same value as now.
  if (const ArReference plain = newest_ar_reference(view); plain.measured())
    message.result->ar_tokens_per_second = plain.tokens_per_second;
  view.reply_state = ReplyState::idle;
  view.context_used = e.context_used;
  if (e.reason == FinishReason::context_full) say_context_is_full(view, 0);
}

void end_reply(ViewModel& view, FinishReason reason) {
  Message& message = view.messages.back();
  message.writing = false;
  ReplyFinished result;
  result.reply_id = view.reply_id;
  result.reason = reason;
  result.reply_tokens = message.tokens;
  result.context_used = view.context_used;
  result.tokens_per_second = message.tokens_per_second;
  // A continuation that failed before it began leaves the reply as it was.
  const bool as_before =
      message.before && (message.continued.empty() || message.continued.back().reply_id != view.reply_id);
  message.result = as_before ? *message.before : result;
  message.before.reset();
  if (!as_before) end_tokens(message);
  message.so_far = {};
  view.reply_state = ReplyState::idle;
}

Effects send_message(ViewModel& view, const std::string& text) {
  if (!view.can_send() || (is_blank(text) && view.chat.attachments.empty())) return {};
  append_question(view, text, std::exchange(view.chat.attachments, {}));
  view.chat.attach_problem.clear();
  return begin_reply(view);
}

Effects stop_reply(ViewModel& view) {
  if (view.idle.held) {
    give_up_held(view);
    Effects effects;
    effects.engine.emplace_back(CancelLoad{});
    return effects;
  }
  if (!view.busy() || view.reply_state == ReplyState::stopping) return {};
  view.reply_state = ReplyState::stopping;
  Effects effects;
  effects.engine.push_back(StopReply{});
  return effects;
}

Effects answer_last_again(ViewModel& view) {
  if (!view.can_send() || view.messages.empty()) return {};
  if (view.messages.back().role == Role::assistant) view.messages.cut(view.messages.size() - 1);
  return view.messages.empty() ? Effects{} : begin_reply(view);
}

void show_rounds_of_branch(ViewModel& view) {
  RoundsState& rounds = view.rounds;
  if (rounds.log != rounds.live) return;
  const std::vector<ReplySummary>& replies = rounds.live->replies();
  for (size_t i = view.messages.size(); i-- > 0;) {
    const auto of_message = [&](const ReplySummary& reply) {
      return reply.message == view.messages[i].id && reply.rounds > 0;
    };
    const auto reply = std::find_if(replies.rbegin(), replies.rend(), of_message);
    if (reply == replies.rend()) continue;
    show_branch(rounds, reply->first_round + reply->rounds - 1);
    return;
  }
}

Effects show_conversation(ViewModel& view, Conversation next) {
  Effects effects = stop_reply(view);
  // End the reply that is being written: its later events are ignored, and its text stays in the old conversation.
  if (view.busy()) end_reply(view, FinishReason::cancelled);
  effects.closed = std::exchange(view.messages, std::move(next));
  effects.closed_rounds = view.rounds.live;
  // A chat that continues the shown one keeps its rounds.
  const auto& replies = view.rounds.live->replies();
  const bool goes_on = std::any_of(replies.begin(), replies.end(), [&](const ReplySummary& reply) {
    return view.messages.find(reply.id) != view.messages.size();
  });
  if (!goes_on) begin_live_log(view.rounds, view.model ? &*view.model : nullptr);
  view.replies_drawn = 0;
  view.context_used = 0;
  view.chat.find_shown = false;
  forget_cards_of_replies(view);
  return effects;
}

Effects new_chat(ViewModel& view) {
  Conversation fresh;
  ++view.chat.begun;
  fresh.system_prompt = view.messages.system_prompt;  // kept, like the sampling settings, as the composer shows it
  return show_conversation(view, std::move(fresh));
}

bool thinking_on(const ViewModel& view) {
  return view.model && view.thinking.value_or(view.model->thinking.by_default);
}

bool age_note(ViewModel& view) {
  ChatState& chat = view.chat;
  if (chat.note != chat.note_seen) {
    chat.note_seen = chat.note;
    chat.note_since_ms = chat.now_ms;
  }
  if (chat.note.empty() || chat.now_ms - chat.note_since_ms < kNoteMs) return false;
  chat.note.clear();
  chat.note_seen.clear();
  return true;
}

Effects update_chat(ViewModel& view, const ChatCommand& command) {
  if (std::holds_alternative<DropOldestTurns>(command))
    return drop_oldest_turns(view) ? answer_last_again(view) : Effects{};
  if (std::holds_alternative<SendAllTurns>(command) && !view.busy()) view.messages.left_out = view.context_used = 0;
  if (const auto* think = std::get_if<SetThinking>(&command)) view.thinking = think->on;
  if (const auto* loops = std::get_if<StopLoops>(&command)) view.stop_loops = loops->on;
  if (const auto* file = std::get_if<RemoveAttachment>(&command)) {
    auto& files = view.chat.attachments;
    if (file->index < files.size()) files.erase(files.begin() + static_cast<std::ptrdiff_t>(file->index));
    view.chat.attach_problem.clear();
  }
  if (std::holds_alternative<BrowseAttachment>(command)) {
    Effects effects;
    effects.browse_text = view.file_dialog_available;
    return effects;
  }
  update_prompts(view, command);
  if (const auto* edit = std::get_if<EditQuestion>(&command)) return edit_question(view, *edit);
  if (const auto* again = std::get_if<AnswerAgain>(&command)) return answer_again(view, again->message);
  if (const auto* on = std::get_if<ContinueReply>(&command)) return continue_reply(view, on->message);
  if (const auto* other = std::get_if<ShowAlternative>(&command)) show_alternative(view, *other);
  if (const auto* from = std::get_if<ContinueInNewChat>(&command)) return continue_in_new_chat(view, from->message);
  if (const auto* prompt = std::get_if<SetSystemPrompt>(&command)) view.messages.system_prompt = prompt->text;
  const auto shown = [&](const std::string& id) { return id.empty() || id == view.messages.id; };
  if (const auto* name = std::get_if<RenameChat>(&command); name && shown(name->id)) view.messages.title = name->title;
  if (const auto* pin = std::get_if<PinChat>(&command); pin && shown(pin->id)) view.messages.pinned = pin->pinned;
  if (const auto* sources = std::get_if<ShowTokenSources>(&command)) view.chat.sources_shown = sources->shown;
  if (const auto* find = std::get_if<ShowFind>(&command)) view.chat.find_shown = find->shown;
  if (const auto* wide = std::get_if<ScrollWide>(&command)) view.chat.wide_steps += std::clamp(wide->steps, -100, 100);
  if (const auto* files = std::get_if<ShowChatFiles>(&command)) {
    view.chat.files = files->shown;
    view.chat.files_problem.clear();
  }
  if (std::holds_alternative<DismissChatNote>(command)) {
    view.chat.note.clear();
    view.chat.deleted.reset();
  }
  return {};
}

}  // namespace canopy::app
