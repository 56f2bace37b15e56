#include "engine/serve/api_reply.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "engine/text/unicode.h"

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

/// What log probabilities of tokens that are all but impossible are told as: JSON has no infinity.
constexpr double kLeastLogprob = -9999;

AnswerJson logprob_json(double logprob) {
  return std::isnan(logprob) ? AnswerJson() : AnswerJson(std::max(kLeastLogprob, logprob));
}

/// "bytes:\xe2\x82" for a token that is no text by itself, so that two of them have not one name.
std::string token_name(const std::string& bytes) {
  if (valid_utf8_prefix(bytes) == bytes.size()) return bytes;
  std::string name = "bytes:";
  for (const char c : bytes) {
    char digits[8];
    std::snprintf(digits, sizeof digits, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    name += digits;
  }
  return name;
}

AnswerJson chat_token(const ApiTokenLogprob& token) {
  AnswerJson bytes = AnswerJson::array();
  for (const char c : token.bytes) bytes.push_back(static_cast<unsigned>(static_cast<unsigned char>(c)));
  return {{"token", token.bytes}, {"logprob", logprob_json(token.logprob)}, {"bytes", std::move(bytes)}};
}

AnswerJson chat_logprobs(std::span<const ApiToken> tokens) {
  AnswerJson content = AnswerJson::array();
  for (const ApiToken& token : tokens) {
    AnswerJson top = AnswerJson::array();
    for (const ApiTokenLogprob& each : token.likeliest) top.push_back(chat_token(each));
    AnswerJson entry = chat_token(token.chosen);
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

/// The token itself is among the likeliest, as the interface has it; of two with one text the likelier is told.
AnswerJson named_logprobs(const ApiToken& token) {
  if (std::isnan(token.chosen.logprob)) return {};
  AnswerJson named = AnswerJson::object();
  const auto add = [&](const ApiTokenLogprob& each) {
    const std::string name = token_name(each.bytes);
    if (!named.contains(name)) named[name] = logprob_json(each.logprob);
  };
  for (const ApiTokenLogprob& each : token.likeliest) add(each);
  add(token.chosen);
  return named;
}

AnswerJson completion_logprobs(std::span<const ApiToken> tokens, std::string_view text) {
  AnswerJson names = AnswerJson::array(), values = AnswerJson::array(), top = AnswerJson::array();
  AnswerJson offsets = AnswerJson::array();
  size_t at = 0, characters = 0;
  for (const ApiToken& token : tokens) {
    for (; at < std::min(token.begin, text.size()); ++at)
      if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) ++characters;
    names.push_back(token_name(token.chosen.bytes));
    values.push_back(logprob_json(token.chosen.logprob));
    top.push_back(named_logprobs(token));
    offsets.push_back(characters);
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(top)},
          {"text_offset", std::move(offsets)}};
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

std::string ApiReplyWriter::delta(AnswerJson delta) {
  return sse_event(event(
      {{"index", index_}, {"delta", std::move(delta)}, {"logprobs", take_logprobs()}, {"finish_reason", nullptr}}));
}

std::string ApiReplyWriter::text_event(const std::string& text, AnswerJson reason) {
  return sse_event(
      event({{"text", text}, {"index", index_}, {"logprobs", take_logprobs()}, {"finish_reason", std::move(reason)}}));
}

AnswerJson ApiReplyWriter::logprobs_of(std::span<const ApiToken> tokens) const {
  if (tokens.empty()) return {};
  return kind_ == ApiKind::chat ? chat_logprobs(tokens) : completion_logprobs(tokens, text_);
}

/// Of the tokens that no event has named yet.
AnswerJson ApiReplyWriter::take_logprobs() {
  const auto untold = std::span<const ApiToken>(tokens_).subspan(told_tokens_);
  told_tokens_ = tokens_.size();
  return logprobs_of(untold);
}

void ApiReplyWriter::tokens(std::vector<ApiToken> tokens) {
  std::ranges::move(tokens, std::back_inserter(tokens_));
}

std::string ApiReplyWriter::opening() {
  return kind_ == ApiKind::chat ? delta({{"role", "assistant"}, {"content", ""}}) : std::string();
}

std::string ApiReplyWriter::part(const ReplyPart& part) {
  std::string events;
  if (kind_ == ApiKind::completion) {
    // A prompt goes on as it stands: nothing is told apart from its text.
    text_ += part.answer;
    return part.answer.empty() ? events : text_event(part.answer, nullptr);
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
  if (kind_ == ApiKind::completion) return text_event("", why);
  return sse_event(event(
      {{"index", index_}, {"delta", AnswerJson::object()}, {"logprobs", take_logprobs()}, {"finish_reason", why}}));
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
    return {{"text", text_}, {"index", index_}, {"logprobs", logprobs_of(tokens_)}, {"finish_reason", why}};
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
  return {
      {"index", index_}, {"message", std::move(message)}, {"logprobs", logprobs_of(tokens_)}, {"finish_reason", why}};
}

AnswerJson ApiReplyWriter::whole(AnswerJson choices, const ApiUsage& usage) const {
  AnswerJson json = head_of(kind_, answer_, false);
  json["choices"] = std::move(choices);
  json["usage"] = to_json(usage);
  return json;
}

}  // namespace canopy
