// What clients of the server send: requests of all kinds and heads of HTTP; and replies that are taken apart for them.
// The first byte says which.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/text.h"
#include "engine/net/http_message.h"
#include "engine/serve/anthropic_api.h"
#include "engine/serve/api_reply.h"
#include "engine/serve/api_request.h"
#include "engine/serve/reply_parts.h"
#include "engine/serve/responses_api.h"
#include "tests/fuzz/harness.h"

namespace canopy::fuzz {
namespace {

void check_refusal(const ApiError& error) {
  require(error.status >= 400 && error.status < 500, "a refusal is the client's");
  const std::string sentence = error.what();
  require(!sentence.empty() && sentence.size() < 4096, "a refusal is a sentence");
  require(printable(sentence, 4096) == sentence, "a refusal can be shown");
  require(nlohmann::json::accept(to_json(error).dump()), "a refusal is written as JSON");
  require(nlohmann::json::accept(anthropic_error(error).dump()), "a refusal is written as JSON");
}

void check_request(const ApiRequest& request, const ApiLimits& limits) {
  validate(request.sampling);
  require(request.turns.empty() == (request.kind == ApiKind::completion), "a chat has turns");
  require(request.prompts.empty() == (request.kind == ApiKind::chat), "a completion has prompts");
  require(request.budget >= 1 && request.budget <= limits.most_budget, "a budget is one that fits");
  require(request.echo || request.max_tokens.value_or(1) >= 1, "a reply has a token");
  require(request.replies >= 1 && request.replies <= kMostReplies, "replies are bounded");
  require(request.logprobs.value_or(0) <= kMostAlternatives, "alternatives are bounded");
  const bool calls = request.tool_choice == ToolChoice::required || request.tool_choice == ToolChoice::named;
  require(!calls || !request.tools.empty(), "who must call has tools");
  const auto& names = request.tool_names;
  require((request.tool_choice == ToolChoice::named) ==
              (std::find(names.begin(), names.end(), request.tool_named) != names.end()),
          "a function that must be called is one of them");
  require(request.tools.empty() == request.tool_names.empty(), "tools have names");
  for (const auto& [id, bias] : request.sampling.logit_bias) require(id < limits.vocabulary, "a bias is of a token");
  for (const std::string& stop : request.stops) require(!stop.empty(), "a stop is a text");
  if (request.dialect != ApiDialect::responses) return;
  require(request.store != request.kept.empty(), "what is stored can be gone on from");
  require(nlohmann::json::accept(request.repeated.dump()), "what is repeated is written as JSON");
}

ApiRequest parse_responses(std::string_view body, const ApiLimits& limits) {
  return parse_responses_request(body, limits, [](const std::string& id) -> std::vector<ChatTurn> {
    if (id != "resp_1") throw ApiError(400, "invalid_request_error", "It is not kept.", "previous_response_id");
    const std::string call = R"([{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}])";
    return turns_of_output(nlohmann::ordered_json::parse(call));
  });
}

template <class F>
void parsed(F&& parse) {
  ApiLimits limits;
  limits.vocabulary = 1000;
  try {
    check_request(parse(limits), limits);
  } catch (const ApiError& error) {
    check_refusal(error);
  }
}

void check_head(std::string_view head) {
  try {
    const HttpRequest request = parse_http_head(head);
    require(request.path.starts_with('/'), "a target is a path");
    require(request.headers.size() <= kMostHeaders, "headers are bounded");
    if (const std::string* host = request.header("host")) touch(host_of(*host));
  } catch (const HttpFault& fault) {
    require(fault.status >= 400 && !http_reason(fault.status).empty(), "a fault has a status");
    require(std::string_view(fault.what()).find_first_of("\"\\\r\n") == std::string_view::npos,
            "a fault is a sentence");
  }
}

/// Takes a reply apart in pieces of `size` bytes.
ReplyPart taken_apart(std::string_view text, size_t size, bool begins_thinking) {
  ReplyParts parts({"f", "g"}, begins_thinking);
  ReplyPart whole;
  const auto add = [&](const ReplyPart& part) {
    whole.thinking += part.thinking;
    whole.answer += part.answer;
    whole.calls.insert(whole.calls.end(), part.calls.begin(), part.calls.end());
  };
  for (size_t at = 0; at < text.size(); at += size) add(parts.push(text.substr(at, size)));
  add(parts.finish());
  return whole;
}

/// Writes a reply in one form: what a stream says is what a whole answer says.
void check_writer(AnswerWriter& writer, const ReplyPart& reply) {
  const auto check_events = [](std::string_view events) {
    while (!events.empty()) {
      const size_t end = events.find("\n\n"), data = events.find("data: ");
      require(end != std::string_view::npos && data < end, "an event has data and an end");
      const std::string_view json = events.substr(data + 6, end - data - 6);
      require(json == "[DONE]" || nlohmann::json::accept(json), "an event is JSON");
      events.remove_prefix(end + 2);
    }
  };
  check_events(writer.opening());
  check_events(writer.part(reply));
  check_events(writer.ending(FinishReason::stop_token));
  nlohmann::ordered_json whole =
      writer.whole(nlohmann::ordered_json::array({writer.choice(FinishReason::stop_token)}), {3, 2, 1});
  check_events(writer.closing({3, 2, 1}));
  const bool has_calls = !reply.calls.empty();
  size_t calls = 0;
  for (const nlohmann::ordered_json& each : whole.at(whole.contains("output") ? "output" : "content"))
    calls += each.at("type") == "tool_use" || each.at("type") == "function_call";
  require(calls == reply.calls.size(), "all calls are told");
  if (!whole.contains("output")) {
    require(whole.at("stop_reason") == (has_calls ? "tool_use" : "end_turn"), "a reply with calls ends for them");
    return;
  }
  // The server has text alone, in which bytes that are none were replaced.
  const std::string written = whole.at("output").dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  require(turns_of_output(nlohmann::ordered_json::parse(written)).size() == 1, "an output is one turn");
}

void check_parts(std::string_view text) {
  const bool begins_thinking = text.starts_with('t');
  const ReplyPart whole = taken_apart(text, text.size() + 1, begins_thinking);
  require(whole.thinking.size() + whole.answer.size() <= text.size(), "nothing is added to a reply");
  ApiReplyWriter writer(ApiKind::chat, {"chatcmpl-1", 0, "m"}, 0, false, false);
  writer.tokens({{{std::string(text.substr(0, 8)), -1}, {{std::string(text.substr(0, 3)), -2}}, text.size() / 2}});
  touch(writer.part(whole));
  ApiReplyWriter completion(ApiKind::completion, {"cmpl-1", 0, "m"}, 0, false, false);
  completion.tokens({{{std::string(text.substr(0, 8)), -1}, {}, text.size() / 2}});
  touch(completion.part(whole) + completion.ending(FinishReason::stop_token));
  require(completion.choice(FinishReason::stop_token)["logprobs"]["text_offset"][0] <= text.size(),
          "a token is in its text");
  MessagesWriter messages({"msg_1", 0, "m"}, 3, false, false);
  check_writer(messages, whole);
  ResponsesWriter responses({"resp_1", 0, "m"}, nlohmann::ordered_json::object(), false);
  check_writer(responses, whole);
  const ReplyPart pieces = taken_apart(text, 3, begins_thinking);
  require(pieces.thinking == whole.thinking, "thinking does not depend on the pieces");
  require(pieces.calls.size() == whole.calls.size(), "calls do not depend on the pieces");
}

}  // namespace

void run(std::string_view input) {
  if (input.empty()) return;
  const std::string_view rest = input.substr(1);
  switch (input.front()) {
    case 'p': return parsed([&](const ApiLimits& limits) { return parse_completion_request(rest, limits); });
    case 'm': return parsed([&](const ApiLimits& limits) { return parse_messages_request(rest, limits); });
    case 'k': return parsed([&](const ApiLimits& limits) { return parse_messages_request(rest, limits, true); });
    case 's': return parsed([&](const ApiLimits& limits) { return parse_responses(rest, limits); });
    case 'h': return check_head(rest);
    case 'r': return check_parts(rest);
    default: return parsed([&](const ApiLimits& limits) { return parse_chat_request(rest, limits); });
  }
}

}  // namespace canopy::fuzz
