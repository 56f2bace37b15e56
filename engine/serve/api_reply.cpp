#include "engine/serve/api_reply.h"

#include <utility>

namespace canopy {
namespace {

using AnswerJson = nlohmann::ordered_json;

std::string one_line(const AnswerJson& json) {
  return json.dump(-1, ' ', false, AnswerJson::error_handler_t::replace);
}

const char* object_of(ApiKind kind, bool chunk) {
  if (kind == ApiKind::completion) return "text_completion";
  return chunk ? "chat.completion.chunk" : "chat.completion";
}

AnswerJson head_of(ApiKind kind, const ApiAnswer& answer, bool chunk) {
  return {{"id", answer.id}, {"object", object_of(kind, chunk)}, {"created", answer.created}, {"model", answer.model}};
}

/// "call_" and what makes it one of this answer: its id without the part that names the interface.
std::string call_id(const ApiAnswer& answer, uint32_t reply, size_t number) {
  const size_t dash = answer.id.find('-');
  return "call_" + answer.id.substr(dash == std::string::npos ? 0 : dash + 1) + "_" + std::to_string(reply) + "_" +
         std::to_string(number);
}

}  // namespace

std::string sse_event(const AnswerJson& json) {
  return "data: " + one_line(json) + "\n\n";
}

std::string sse_event(std::string_view name, const AnswerJson& json) {
  return "event: " + std::string(name) + "\n" + sse_event(json);
}

AnswerJson to_json(const ApiUsage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.reply},
          {"total_tokens", usage.prompt + usage.reply},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}}};
}

std::string_view finish_reason_of(FinishReason reason, bool has_calls) {
  if (reason == FinishReason::max_tokens || reason == FinishReason::context_full) return "length";
  return has_calls ? "tool_calls" : "stop";
}

ApiReplyWriter::ApiReplyWriter(ApiKind kind, ApiAnswer answer, uint32_t index, bool one_call, bool include_usage)
    : kind_(kind), answer_(std::move(answer)), index_(index), one_call_(one_call), include_usage_(include_usage) {}

AnswerJson ApiReplyWriter::event(AnswerJson choice) const {
  AnswerJson json = head_of(kind_, answer_, true);
  json["choices"] = AnswerJson::array({std::move(choice)});
  // With counts at the end, the events before have the field and nothing in it.
  if (include_usage_) json["usage"] = nullptr;
  return json;
}

std::string ApiReplyWriter::delta(AnswerJson delta) const {
  return sse_event(
      event({{"index", index_}, {"delta", std::move(delta)}, {"logprobs", nullptr}, {"finish_reason", nullptr}}));
}

std::string ApiReplyWriter::opening() {
  return kind_ == ApiKind::chat ? delta({{"role", "assistant"}, {"content", ""}}) : std::string();
}

std::string ApiReplyWriter::part(const ReplyPart& part) {
  std::string events;
  if (kind_ == ApiKind::completion) {
    // A prompt goes on as it stands: nothing is told apart from its text.
    text_ += part.answer;
    if (part.answer.empty()) return events;
    return sse_event(
        event({{"text", part.answer}, {"index", index_}, {"logprobs", nullptr}, {"finish_reason", nullptr}}));
  }
  thinking_ += part.thinking;
  text_ += part.answer;
  // DeepSeek's name, which most clients read.
  if (!part.thinking.empty()) events += delta({{"reasoning_content", part.thinking}});
  if (!part.answer.empty()) events += delta({{"content", part.answer}});
  for (const ToolCall& call : part.calls) {
    if (one_call_ && !calls_.empty()) break;
    const size_t number = calls_.size();
    calls_.push_back(call);
    events += delta({{"tool_calls", AnswerJson::array({{{"index", number},
                                                        {"id", call_id(answer_, index_, number)},
                                                        {"type", "function"},
                                                        {"function", {{"name", call.name}, {"arguments", ""}}}}})}});
    events += delta(
        {{"tool_calls", AnswerJson::array({{{"index", number}, {"function", {{"arguments", call.arguments}}}}})}});
  }
  return events;
}

std::string ApiReplyWriter::ending(FinishReason reason) {
  const std::string_view why = finish_reason_of(reason, has_calls());
  if (kind_ == ApiKind::completion)
    return sse_event(event({{"text", ""}, {"index", index_}, {"logprobs", nullptr}, {"finish_reason", why}}));
  return sse_event(
      event({{"index", index_}, {"delta", AnswerJson::object()}, {"logprobs", nullptr}, {"finish_reason", why}}));
}

std::string ApiReplyWriter::closing(const ApiUsage& usage) {
  std::string events;
  if (include_usage_) {
    AnswerJson json = head_of(kind_, answer_, true);
    json["choices"] = AnswerJson::array();
    json["usage"] = to_json(usage);
    events = sse_event(json);
  }
  return events + std::string(kSseDone);
}

AnswerJson ApiReplyWriter::choice(FinishReason reason) const {
  const std::string_view why = finish_reason_of(reason, has_calls());
  if (kind_ == ApiKind::completion)
    return {{"text", text_}, {"index", index_}, {"logprobs", nullptr}, {"finish_reason", why}};
  AnswerJson message = {{"role", "assistant"}, {"content", text_}};
  if (text_.empty() && has_calls()) message["content"] = nullptr;
  if (!thinking_.empty()) message["reasoning_content"] = thinking_;
  message["refusal"] = nullptr;
  if (has_calls()) {
    AnswerJson calls = AnswerJson::array();
    for (const ToolCall& call : calls_)
      calls.push_back({{"id", call_id(answer_, index_, calls.size())},
                       {"type", "function"},
                       {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    message["tool_calls"] = std::move(calls);
  }
  return {{"index", index_}, {"message", std::move(message)}, {"logprobs", nullptr}, {"finish_reason", why}};
}

AnswerJson whole_answer(ApiKind kind, const ApiAnswer& answer, AnswerJson choices, const ApiUsage& usage) {
  AnswerJson json = head_of(kind, answer, false);
  json["choices"] = std::move(choices);
  json["usage"] = to_json(usage);
  return json;
}

}  // namespace canopy
