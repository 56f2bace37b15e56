#include "app/state/continue_reply.h"

#include <algorithm>
#include <utility>

#include "app/state/chat_update.h"
#include "app/state/view_model.h"

namespace canopy::app {

bool is_unfinished(const ViewModel& view, size_t i) {
  if (view.replaying() || i + 1 != view.messages.size()) return false;
  const Message& message = view.messages[i];
  if (message.role != Role::assistant || message.writing || !message.result || message.text.empty()) return false;
  return message.result->reason == FinishReason::max_tokens || message.result->reason == FinishReason::cancelled;
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
  message.before = std::exchange(message.result, std::nullopt);
  message.writing = true;
  Effects effects;
  effects.engine.push_back(std::move(command));
  return effects;
}

void on_continued(Message& message, const ReplyStarted& event) {
  cut_text(message, event.begun_bytes);
  message.continued.push_back({event.reply_id, message.rounds, static_cast<uint32_t>(message.text.size())});
}

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
  // What drafted a part of it has drafted it.
  if (part.mode == DecodeMode::ar) whole.mode = before.mode;
  return whole;
}

}  // namespace canopy::app
