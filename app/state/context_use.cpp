#include "app/state/context_use.h"

#include <algorithm>
#include <utility>

#include "app/base/figures.h"
#include "app/state/view_model.h"

namespace canopy::app {
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

/// The next question after message i; the number of messages where there is none.
size_t question_after(const Conversation& chat, size_t i) {
  for (++i; i < chat.size(); ++i)
    if (chat[i].role == Role::user) return i;
  return chat.size();
}

}  // namespace

ContextUse context_use(const ViewModel& view) {
  ContextUse use;
  use.planned = view.model ? view.model->context : 0;
  use.used = view.context_used;
  const Conversation& chat = view.messages;
  // Of a chat that was just opened: what it took when its last reply was written.
  for (size_t i = chat.size(); use.used == 0 && i-- > chat.unsent();)
    if (chat[i].result) use.used = chat[i].result->context_used;
  for (const Attachment& each : view.chat.attachments) use.waiting += each.tokens;
  return use;
}

std::string context_words(const ContextUse& use) {
  if (use.planned == 0) return "How much of the context this chat takes: needs a model";
  std::string words = "This chat takes " + grouped(use.used) + " of " + grouped(use.planned) +
                      " tokens, the most that the model can see at once here";
  if (use.waiting > 0) words += "\nThe attached files will take about " + grouped(use.waiting) + " more";
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
  std::erase_if(view.cards, [](const Card& c) { return c.action == Card::Action::drop_oldest; });
  return chat.back().failed_unsaid() || chat.back().role == Role::user;
}

void say_context_is_full(ViewModel& view, uint32_t prompt_tokens) {
  const std::string planned = view.model ? grouped(view.model->context) : "all";
  const std::string fact = prompt_tokens > 0 ? "The chat with this question takes " + grouped(prompt_tokens) +
                                                   " tokens; the model can see " + planned + " at once here."
                                             : "The reply ended where the chat filled all " + planned +
                                                   " tokens that the model can see at once here.";
  Card card{++view.last_id, true, "The context is full", "", Card::Action::drop_oldest};
  if (can_drop_turns(view)) {
    card.detail = fact + " Drop the oldest turns to go on: they stay here and on the disk, and the model no longer " +
                  "sees them. Or stop here.";
  } else {
    card.action = Card::Action::run_again;
    card.detail = fact + " There are no older turns to drop: shorten the question, or begin a new chat.";
  }
  std::erase_if(view.cards, [&](const Card& c) { return c.title == card.title; });
  view.cards.push_back(std::move(card));
}

}  // namespace canopy::app
