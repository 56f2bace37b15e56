// What clients of the server send: requests of both kinds and heads of HTTP; and replies that are taken apart for them.
// The first byte says which.

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/text.h"
#include "engine/net/http_message.h"
#include "engine/serve/api_reply.h"
#include "engine/serve/api_request.h"
#include "engine/serve/reply_parts.h"
#include "tests/fuzz/harness.h"

namespace canopy::fuzz {
namespace {

void check_refusal(const ApiError& error) {
  require(error.status >= 400 && error.status < 500, "a refusal is the client's");
  const std::string sentence = error.what();
  require(!sentence.empty() && sentence.size() < 4096, "a refusal is a sentence");
  require(printable(sentence, 4096) == sentence, "a refusal can be shown");
  require(nlohmann::json::accept(to_json(error).dump()), "a refusal is written as JSON");
}

void check_request(const ApiRequest& request, const ApiLimits& limits) {
  validate(request.sampling);
  require(request.turns.empty() == (request.kind == ApiKind::completion), "a chat has turns");
  require(request.prompts.empty() == (request.kind == ApiKind::chat), "a completion has prompts");
  require(request.budget >= 1 && request.budget <= limits.most_budget, "a budget is one that fits");
  require(request.max_tokens.value_or(1) >= 1, "a reply has a token");
  require(request.tools.empty() == request.tool_names.empty(), "tools have names");
  for (const auto& [id, bias] : request.sampling.logit_bias) require(id < limits.vocabulary, "a bias is of a token");
  for (const std::string& stop : request.stops) require(!stop.empty(), "a stop is a text");
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

void check_parts(std::string_view text) {
  const bool begins_thinking = text.starts_with('t');
  const ReplyPart whole = taken_apart(text, text.size() + 1, begins_thinking);
  require(whole.thinking.size() + whole.answer.size() <= text.size(), "nothing is added to a reply");
  ApiReplyWriter writer(ApiKind::chat, {"chatcmpl-1", 0, "m"}, 0, false, false);
  touch(writer.part(whole));
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
    case 'h': return check_head(rest);
    case 'r': return check_parts(rest);
    default: return parsed([&](const ApiLimits& limits) { return parse_chat_request(rest, limits); });
  }
}

}  // namespace canopy::fuzz
