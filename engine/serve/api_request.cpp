#include "engine/serve/api_request.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/serve/api_fields.h"
#include "engine/text/chat_json.h"
#include "engine/text/chat_template.h"

namespace canopy {
namespace {

constexpr size_t kMostPrompts = 64;

/// What would change the answer and is not done: whatever is given beside what changes nothing.
void refuse_what_is_not_done(const ApiFields& fields) {
  refuse_what_no_form_does(fields);
  if (const ApiJson* value = fields.find("response_format")) {
    const std::string type = ApiFields(*value, "response_format").text("type");
    if (type != "text")
      refuse("response_format", "The field \"response_format\" asks for the type " + quoted_name(type) +
                                    ", which this server does not do; {\"type\": \"text\"} is allowed.");
  }
  if (const ApiJson* value = fields.find("modalities"))
    if (*value != ApiJson::array({"text"})) refuse_undone("modalities", *value, "[\"text\"] is allowed");
}

/// "n", how many replies are written to a prompt, and "best_of", out of how many they would be chosen.
void read_replies(const ApiFields& fields, ApiRequest& request) {
  request.replies = static_cast<uint32_t>(fields.whole("n", 1, kMostReplies).value_or(1));
  const ApiJson* best = fields.find("best_of");
  if (best != nullptr && fields.whole("best_of", 1, 1 << 20) != request.replies)
    refuse_undone("best_of", *best, "as many as \"n\" are allowed: all replies that are written are sent");
}

/// A count of the likeliest tokens in completions, a switch beside such a count in chats.
void read_logprobs(const ApiFields& fields, ApiRequest& request) {
  const ApiJson* value = fields.find("logprobs");
  const ApiJson* top = fields.find("top_logprobs");
  if (const ApiJson* prompt = fields.find("prompt_logprobs"); prompt != nullptr && *prompt != ApiJson(false))
    refuse_undone("prompt_logprobs", *prompt, "\"echo\" with \"logprobs\" in /v1/completions gives them");
  if (request.kind == ApiKind::completion) {
    const bool off = value == nullptr || (value->is_boolean() && !value->get<bool>());
    if (!off) request.logprobs = static_cast<uint32_t>(*fields.whole("logprobs", 0, kMostAlternatives));
    if (top != nullptr && fields.whole("top_logprobs", 0, kMostAlternatives) != 0)
      refuse_undone("top_logprobs", *top, "it belongs to /v1/chat/completions; here \"logprobs\" is the number");
    return;
  }
  const int64_t count = fields.whole("top_logprobs", 0, kMostAlternatives).value_or(0);
  if (fields.boolean("logprobs", false)) {
    request.logprobs = static_cast<uint32_t>(count);
  } else if (count > 0) {
    refuse_value("top_logprobs", *top, "without \"logprobs\": true, 0 is allowed");
  }
}

void read_common(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request) {
  refuse_what_is_not_done(fields);
  request.model = fields.text("model");
  request.stream = fields.boolean("stream", false);
  if (const ApiJson* value = fields.find("stream_options"))
    request.include_usage = ApiFields(*value, "stream_options").boolean("include_usage", false);
  read_sampling(fields, limits, request);
  read_replies(fields, request);
  read_logprobs(fields, request);
  read_stops(fields, "stop", request);
  read_speculation(fields, limits, request);
  for (const char* name : {"max_tokens", "max_completion_tokens"})
    if (const auto most = fields.whole(name, request.echo ? 0 : 1, std::numeric_limits<int32_t>::max()))
      request.max_tokens = static_cast<uint32_t>(*most);
}

/// "auto", "none", "required" or {"type": "function", "function": {"name"}}. `names`: of the tools that are offered.
void read_tool_choice(const ApiFields& fields, const std::vector<std::string>& names, ApiRequest& request) {
  const ApiJson* choice = fields.find("tool_choice");
  if (choice == nullptr) return;
  constexpr const char* allowed =
      R"("auto", "none", "required" and {"type": "function", "function": {"name": ...}} are allowed)";
  if (choice->is_string()) {
    const std::string word = choice->get<std::string>();
    if (word == "none") request.tool_choice = ToolChoice::none;
    if (word == "required") request.tool_choice = ToolChoice::required;
    if (word != "auto" && request.tool_choice == ToolChoice::automatic) refuse_value("tool_choice", *choice, allowed);
  } else {
    const ApiFields parts(*choice, "tool_choice");
    if (parts.text("type") != "function") refuse_value("tool_choice", *choice, allowed);
    const ApiJson* function = parts.find("function");
    if (function == nullptr) refuse("tool_choice", "The field \"tool_choice\" lacks \"function\".");
    request.tool_choice = ToolChoice::named;
    request.tool_named = ApiFields(*function, "tool_choice.function").text("name");
    if (std::ranges::find(names, request.tool_named) == names.end())
      refuse("tool_choice", "The field \"tool_choice\" names the function " + quoted_name(request.tool_named) +
                                ", which is none of \"tools\".");
  }
}

void read_tools(const ApiFields& fields, ApiRequest& request) {
  const ApiJson* tools = find_tools(fields, "functions");
  std::vector<std::string> names;
  if (tools != nullptr) {
    for (const ApiJson& tool : *tools) {
      const std::string place = place_in("tools", names.size());
      const ApiFields parts(tool, place);
      const std::string type = parts.find("type") == nullptr ? "function" : parts.text("type");
      if (type != "function")
        refuse(place + ".type", "The field \"" + place + ".type\" is " + quoted_name(type) +
                                    ", which this server does not do; \"function\" is allowed.");
      const ApiJson* function = parts.find("function");
      if (function == nullptr) refuse(place, "The field \"" + place + "\" lacks \"function\".");
      std::string name = ApiFields(*function, place + ".function").text("name");
      if (name.empty()) refuse(place, "The field \"" + place + ".function\" lacks \"name\".");
      names.push_back(std::move(name));
    }
  }
  read_tool_choice(fields, names, request);
  request.one_call = !fields.boolean("parallel_tool_calls", true);
  offer_tools(tools != nullptr ? *tools : ApiJson::array(), std::move(names), request);
}

void read_thinking(const ApiFields& fields, ApiRequest& request) {
  if (const ApiJson* value = fields.find("reasoning_effort")) {
    constexpr std::array words = {"none", "minimal", "low", "medium", "high", "xhigh"};
    const std::string word = fields.text("reasoning_effort");
    if (std::ranges::find(words, word) == words.end())
      refuse_value("reasoning_effort", *value, "none, minimal, low, medium, high or xhigh is allowed");
    request.thinking = word != "none";
  }
  if (const ApiJson* value = fields.find("chat_template_kwargs")) {
    const ApiFields wishes(*value, "chat_template_kwargs");
    for (const auto& [key, each] : value->items())
      if (key != "enable_thinking")
        refuse_undone("chat_template_kwargs." + key, each, "\"enable_thinking\" is allowed");
    if (wishes.find("enable_thinking") != nullptr) request.thinking = wishes.boolean("enable_thinking", true);
  }
}

/// The ids of a list that has nothing else.
std::vector<uint32_t> ids_of(const ApiJson& list, const ApiLimits& limits) {
  std::vector<uint32_t> ids;
  for (const ApiJson& each : list) {
    const bool is_id = each.is_number_unsigned() && each.get<uint64_t>() <= UINT32_MAX &&
                       (limits.vocabulary == 0 || each.get<uint64_t>() < limits.vocabulary);
    if (!is_id)
      refuse_value("prompt", each,
                   "in a list of ids, whole numbers below " + std::to_string(limits.vocabulary) + " are allowed");
    ids.push_back(each.get<uint32_t>());
  }
  return ids;
}

void read_prompts(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request) {
  const ApiJson* value = fields.find("prompt");
  constexpr const char* allowed = "a string, a list of ids, or a list of either is allowed";
  if (value == nullptr) refuse("prompt", std::string("The field \"prompt\" is missing; ") + allowed + ".");
  const auto require_some = [&](const RawPrompt& prompt) {
    const bool empty = std::visit([](const auto& each) { return each.empty(); }, prompt);
    if (empty) refuse_value("prompt", *value, "at least one token is needed");
  };
  if (value->is_string()) {
    request.prompts.emplace_back(value->get<std::string>());
  } else if (!value->is_array() || value->empty()) {
    refuse_value("prompt", *value, allowed);
  } else if (value->front().is_number()) {
    request.prompts.emplace_back(ids_of(*value, limits));
  } else {
    if (value->size() > kMostPrompts)
      refuse_value("prompt", *value, "at most " + std::to_string(kMostPrompts) + " prompts are allowed");
    for (const ApiJson& each : *value) {
      if (each.is_string()) {
        request.prompts.emplace_back(each.get<std::string>());
      } else if (each.is_array()) {
        request.prompts.emplace_back(ids_of(each, limits));
      } else {
        refuse_value("prompt", each, allowed);
      }
    }
  }
  for (const RawPrompt& prompt : request.prompts) require_some(prompt);
}

}  // namespace

ApiJson to_json(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? ApiJson() : ApiJson(text); };
  return {{"error",
           {{"message", error.what()},
            {"type", error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

ApiRequest parse_chat_request(std::string_view body, const ApiLimits& limits) {
  const ApiJson json = parse_api_body(body);
  const ApiFields fields(json, "");
  ApiRequest request;
  read_common(fields, limits, request);
  const ApiJson* messages = fields.find("messages");
  if (messages == nullptr) refuse("messages", "The field \"messages\" is missing; a list of turns is expected.");
  try {
    request.turns = turns_from_json(*messages);
  } catch (const Error& error) {
    refuse("messages", error.what());
  }
  for (ChatTurn& turn : request.turns)
    if (turn.role == "developer") turn.role = "system";
  read_tools(fields, request);
  read_thinking(fields, request);
  read_canopy(fields, limits, request);
  return request;
}

ApiRequest parse_completion_request(std::string_view body, const ApiLimits& limits) {
  const ApiJson json = parse_api_body(body);
  const ApiFields fields(json, "");
  ApiRequest request;
  request.kind = ApiKind::completion;
  request.max_tokens = limits.completion_tokens;
  request.echo = fields.boolean("echo", false);
  read_common(fields, limits, request);
  for (const char* chats : {"messages", "tools", "tool_choice"})
    if (const ApiJson* value = fields.find(chats)) refuse_undone(chats, *value, "it belongs to /v1/chat/completions");
  read_prompts(fields, limits, request);
  read_canopy(fields, limits, request);
  return request;
}

}  // namespace canopy
