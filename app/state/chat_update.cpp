#include "app/state/chat_update.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "app/conversation/attached_text.h"
#include "app/conversation/message.h"
#include "app/conversation/thinking.h"
#include "app/state/context_use.h"
#include "app/state/continue_reply.h"
#include "app/state/drafting.h"
#include "app/state/view_model.h"
#include "engine/base/error.h"

namespace canopy::app {
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
  std::erase_if(view.cards, [](const Card& c) {
    return c.action == Card::Action::run_again || c.action == Card::Action::drop_oldest;
  });
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

void begin_reading(ViewModel& view, Generate& command) {
  if (view.model) command.mode = mode_for(view.drafting, *view.model);
  command.budget = view.shell.tree_budget;
  view.reply_id = command.reply_id;
  view.reply_state = ReplyState::reading_prompt;
  view.prompt = {};
  forget_cards_of_replies(view);
  update(view.rounds, FollowRounds{});  // who asks wants to see the answer come
}

void on_started(ViewModel& view, const ReplyStarted& e) {
  if (Message& message = view.messages.back(); message.before) on_continued(message, e);
}

void on_text(ViewModel& view, const TextDelta& e) {
  if (view.reply_state == ReplyState::reading_prompt) view.reply_state = ReplyState::writing;
  Message& message = view.messages.back();
  message.text += e.text;
  message.thought = e.thought;
  message.tokens = e.reply_tokens;
  message.tokens_per_second = e.tokens_per_second;
  view.context_used = e.context_used;
}

void on_round(ViewModel& view, const RoundFinished& e) {
  if (!e.round) return;
  const RoundRecord& record = *e.round;
  Message& message = view.messages.back();
  const uint32_t round = record.round + (message.continued.empty() ? 0 : message.continued.back().first_round);
  message.rounds = std::max(message.rounds, round + 1);
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
  // What the verdict under the reply compares with: the same value as everywhere else.
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
  fresh.system_prompt = view.messages.system_prompt;  // kept, like the sampling settings, as the composer shows it
  return show_conversation(view, std::move(fresh));
}

std::optional<bool> thinking_asked(const ViewModel& view) {
  return view.model && view.model->thinking.switchable ? view.thinking : std::nullopt;
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
  if (const auto* name = std::get_if<RenameChat>(&command)) view.messages.title = name->title;
  if (const auto* sources = std::get_if<ShowTokenSources>(&command)) view.chat.sources_shown = sources->shown;
  if (const auto* find = std::get_if<ShowFind>(&command)) view.chat.find_shown = find->shown;
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
