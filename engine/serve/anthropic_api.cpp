#include "engine/serve/anthropic_api.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/serve/api_fields.h"
#include "engine/serve/turn_builder.h"

namespace canopy {
namespace {

constexpr const char* kTextOrBlocks = "a string or a list of blocks is allowed";

/// The texts of a string, or of a list of blocks of text.
std::vector<std::string> texts_of_blocks(const ApiJson& value, const std::string& place) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) refuse_value(place, value, kTextOrBlocks);
  std::vector<std::string> texts;
  for (const ApiJson& block : value) {
    const ApiFields fields(block, place_in(place, texts.size()));
    const std::string type = fields.required_text("type");
    if (type != "text") refuse_type(fields.name("type"), type, "\"text\" is allowed");
    texts.push_back(fields.required_text("text"));
  }
  return texts;
}

void read_block(const ApiFields& block, const std::string& role, TurnBuilder& turns) {
  const std::string type = block.required_text("type");
  if (type == "text") return turns.text(role, block.required_text("text"));
  if (role == "assistant" && type == "thinking") return turns.thinking(block.required_text("thinking"));
  if (role == "assistant" && type == "redacted_thinking") return;  // nobody but its writer can read it
  if (role == "assistant" && type == "tool_use") {
    const ApiJson* input = block.find("input");
    if (input != nullptr && !input->is_object()) refuse_value(block.name("input"), *input, "an object is allowed");
    return turns.call(block.required_text("id"), block.required_text("name"),
                      input == nullptr ? ApiJson::object() : *input);
  }
  if (role == "user" && type == "tool_result") {
    const ApiJson* content = block.find("content");
    std::vector<std::string> texts;
    if (content != nullptr) texts = texts_of_blocks(*content, block.name("content"));
    return turns.result(block.required_text("tool_use_id"), std::move(texts));
  }
  refuse_type(block.name("type"), type,
              role == "assistant" ? "\"text\", \"thinking\", \"redacted_thinking\" and \"tool_use\" are allowed"
              : role == "user"    ? "\"text\" and \"tool_result\" are allowed"
                                  : "\"text\" is allowed");
}

/// Returns the role of the message.
std::string read_message(const ApiJson& message, const std::string& place, TurnBuilder& turns) {
  const ApiFields fields(message, place);
  const std::string role = fields.required_text("role");
  fields.word("role", {"user", "assistant", "system"});
  const ApiJson* content = fields.find("content");
  const std::string inside = fields.name("content");
  if (content == nullptr) refuse(inside, "The field \"" + inside + "\" is missing; " + kTextOrBlocks + ".");
  if (content->is_string()) {
    turns.text(role, content->get<std::string>());
  } else if (!content->is_array()) {
    refuse_value(inside, *content, kTextOrBlocks);
  } else if (content->empty()) {
    turns.speak(role);
  } else {
    for (size_t i = 0; i < content->size(); ++i) read_block(ApiFields((*content)[i], place_in(inside, i)), role, turns);
  }
  return role;
}

void read_messages(const ApiFields& fields, bool only_counts, ApiRequest& request) {
  TurnBuilder turns;
  if (const ApiJson* system = fields.find("system"))
    for (std::string& text : texts_of_blocks(*system, "system")) turns.text("system", std::move(text));
  const ApiJson* messages = fields.find("messages");
  if (messages == nullptr) refuse("messages", "The field \"messages\" is missing; a list of messages is expected.");
  if (!messages->is_array() || messages->empty())
    refuse_value("messages", *messages, "a list of at least one message is allowed");
  std::string role;
  for (size_t i = 0; i < messages->size(); ++i) role = read_message((*messages)[i], place_in("messages", i), turns);
  if (role == "assistant" && !only_counts)
    refuse_type(place_in("messages", messages->size() - 1) + ".role", role,
                "the last message must be the user's: a text that the assistant has begun is not gone on with");
  try {
    request.turns = turns.finish();
  } catch (const Error& error) {
    refuse("messages", error.what());
  }
}

void read_message_tools(const ApiFields& fields, ApiRequest& request) {
  ApiJson functions = ApiJson::array();
  std::vector<std::string> names;
  if (const ApiJson* tools = find_tools(fields, "tools")) {
    for (const ApiJson& tool : *tools) {
      const ApiFields parts(tool, place_in("tools", names.size()));
      // All other types are run by Anthropic's own servers, or are known to its models without a description.
      const std::string type = parts.text("type");
      if (!type.empty() && type != "custom")
        refuse_type(parts.name("type"), type, "\"custom\" is allowed, with \"name\" and \"input_schema\"");
      ApiJson function = read_function(parts, names);
      const ApiJson* schema = parts.find("input_schema");
      if (schema == nullptr)
        refuse(parts.name("input_schema"),
               "The field \"" + parts.name("input_schema") + "\" is missing; an object is expected.");
      if (!schema->is_object()) refuse_value(parts.name("input_schema"), *schema, "an object is allowed");
      function["parameters"] = *schema;
      functions.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
  }
  if (const ApiJson* value = fields.find("tool_choice")) {
    const ApiFields choice(*value, "tool_choice");
    const std::string type = choice.required_text("type");
    choice.word("type", {"auto", "any", "none", "tool"});
    request.one_call = choice.boolean("disable_parallel_tool_use", false);
    if (type == "none") request.tool_choice = ToolChoice::none;
    if (type == "any") request.tool_choice = ToolChoice::required;
    if (type == "tool") {
      request.tool_choice = ToolChoice::named;
      request.tool_named = choice.required_text("name");
      if (std::ranges::find(names, request.tool_named) == names.end())
        refuse_value("tool_choice.name", *choice.find("name"), "a name of \"tools\" is allowed");
    }
  }
  offer_tools(functions, std::move(names), request);
}

void read_message_thinking(const ApiFields& fields, ApiRequest& request) {
  if (const ApiJson* value = fields.find("thinking")) {
    const ApiFields thinking(*value, "thinking");
    const std::string type = thinking.required_text("type");
    thinking.word("type", {"enabled", "disabled", "adaptive"});
    // The model ends its thinking by itself; what bounds it is max_tokens.
    if (!thinking.whole("budget_tokens", 1, std::numeric_limits<int32_t>::max()) && type == "enabled")
      refuse("thinking.budget_tokens",
             "The field \"thinking.budget_tokens\" is missing; a whole number of tokens is expected.");
    request.thinking = type != "disabled";
    request.omits_thinking = thinking.word("display", {"summarized", "omitted"}) == "omitted";
  }
  if (const ApiJson* value = fields.find("output_config")) {
    const ApiFields config(*value, "output_config");
    config.word("effort", {"low", "medium", "high", "xhigh", "max"});
    if (const ApiJson* format = config.find("format"))
      refuse_undone("output_config.format", *format, "leave it out: answers are text");
  }
}

void refuse_what_messages_lack(const ApiFields& fields) {
  refuse_what_no_form_does(fields);
  for (const char* name : {"container", "mcp_servers"})
    if (const ApiJson* value = fields.find(name); value != nullptr && !(value->is_array() && value->empty()))
      refuse_undone(name, *value, "leave it out");
  if (const ApiJson* value = fields.find("context_management")) {
    const ApiJson* edits = ApiFields(*value, "context_management").find("edits");
    if (edits == nullptr) return;
    if (!edits->is_array()) refuse_value("context_management.edits", *edits, "a list is allowed");
    for (size_t i = 0; i < edits->size(); ++i) {
      const ApiFields edit((*edits)[i], place_in("context_management.edits", i));
      // What is kept of earlier thinking is the business of the model's chat template.
      const std::string type = edit.required_text("type");
      if (!type.starts_with("clear_thinking_"))
        refuse_type(edit.name("type"), type, "leave it out: messages are read as they are");
    }
  }
}

std::string message_event(const ApiJson& json) {
  return sse_event(json.at("type").get_ref<const std::string&>(), json);
}

ApiJson message_usage(uint64_t input, uint64_t cached, uint64_t output) {
  return {{"input_tokens", input},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached},
          {"output_tokens", output}};
}

/// Tokens that were in the cache are counted beside the others.
ApiJson message_usage(const ApiUsage& usage) {
  const uint64_t cached = std::min(usage.cached, usage.prompt);
  ApiJson json = message_usage(usage.prompt - cached, cached, usage.reply);
  json["output_tokens_details"] = {{"thinking_tokens", usage.thinking}};
  return json;
}

}  // namespace

ApiRequest parse_messages_request(std::string_view body, const ApiLimits& limits, bool only_counts) {
  const ApiJson json = parse_api_body(body);
  const ApiFields fields(json, "");
  ApiRequest request;
  request.dialect = ApiDialect::anthropic;
  refuse_what_messages_lack(fields);
  request.model = fields.text("model");
  request.stream = fields.boolean("stream", false);
  if (const auto most = fields.whole("max_tokens", 1, std::numeric_limits<int32_t>::max())) {
    request.max_tokens = static_cast<uint32_t>(*most);
  } else if (!only_counts) {
    refuse("max_tokens", "The field \"max_tokens\" is missing; a whole number of tokens is expected.");
  }
  read_sampling(fields, limits, request);
  read_stops(fields, "stop_sequences", request);
  read_speculation(fields, limits, request);
  read_messages(fields, only_counts, request);
  read_message_tools(fields, request);
  read_message_thinking(fields, request);
  read_canopy(fields, limits, request);
  return request;
}

ApiJson anthropic_error(const ApiError& error) {
  const char* type = "invalid_request_error";
  switch (error.status) {
    case 401: type = "authentication_error"; break;
    case 403: type = "permission_error"; break;
    case 404: type = "not_found_error"; break;
    case 413: type = "request_too_large"; break;
    case 429: type = "rate_limit_error"; break;
    case 503: type = "overloaded_error"; break;
    default:
      if (error.status >= 500) type = "api_error";
  }
  return {{"type", "error"}, {"error", {{"type", type}, {"message", error.what()}}}};
}

MessagesWriter::MessagesWriter(ApiAnswer answer, uint64_t prompt_tokens, bool one_call, bool omits_thinking)
    : answer_(std::move(answer)), prompt_tokens_(prompt_tokens), one_call_(one_call), omits_thinking_(omits_thinking) {}

std::string MessagesWriter::opening() {
  return message_event({{"type", "message_start"},
                        {"message",
                         {{"id", answer_.id},
                          {"type", "message"},
                          {"role", "assistant"},
                          {"model", answer_.model},
                          {"content", ApiJson::array()},
                          {"stop_reason", nullptr},
                          {"stop_sequence", nullptr},
                          {"usage", message_usage(prompt_tokens_, 0, 0)}}}});
}

std::string MessagesWriter::start(const ApiJson& block) {
  std::string events = stop();
  const size_t index = blocks_.size();
  blocks_.push_back(block);
  open_ = true;
  return events + message_event({{"type", "content_block_start"}, {"index", index}, {"content_block", block}});
}

std::string MessagesWriter::delta(const ApiJson& delta) const {
  return message_event({{"type", "content_block_delta"}, {"index", blocks_.size() - 1}, {"delta", delta}});
}

std::string MessagesWriter::stop() {
  if (!open_) return {};
  open_ = false;
  std::string events;
  // Clients hand thinking back only with a signature, which nothing here looks at.
  if (blocks_.back().at("type") == "thinking") {
    blocks_.back()["signature"] = answer_.id;
    events = delta({{"type", "signature_delta"}, {"signature", answer_.id}});
  }
  return events + message_event({{"type", "content_block_stop"}, {"index", blocks_.size() - 1}});
}

std::string MessagesWriter::add(const char* type, const std::string& text) {
  const bool thinks = std::string_view(type) == "thinking";
  std::string events;
  if (!open_ || blocks_.back().at("type") != type) {
    ApiJson block = {{"type", type}, {type, ""}};
    if (thinks) block["signature"] = "";
    events = start(block);
  }
  if (text.empty() || (thinks && omits_thinking_)) return events;
  std::string& whole = blocks_.back().at(type).get_ref<std::string&>();
  whole += text;
  return events + delta({{"type", std::string(type) + "_delta"}, {type, text}});
}

std::string MessagesWriter::call(const ToolCall& call) {
  if (one_call_ && has_calls_) return {};
  has_calls_ = true;
  ApiJson block = {
      {"type", "tool_use"},
      {"id", "toolu_" + answer_.id.substr(answer_.id.find('_') + 1) + "_" + std::to_string(blocks_.size())},
      {"name", call.name},
      {"input", ApiJson::object()}};
  std::string events = start(block);
  ApiJson input = arguments_object(call.arguments);
  events += delta(
      {{"type", "input_json_delta"}, {"partial_json", input.dump(-1, ' ', false, ApiJson::error_handler_t::replace)}});
  blocks_.back()["input"] = std::move(input);
  return events + stop();
}

std::string MessagesWriter::part(const ReplyPart& part) {
  std::string events;
  if (!part.thinking.empty()) events += add("thinking", part.thinking);
  if (!part.answer.empty()) events += add("text", part.answer);
  for (const ToolCall& each : part.calls) events += call(each);
  return events;
}

std::string MessagesWriter::ending(FinishReason reason) {
  reason_ = reason;
  // Programs look at the first block without asking whether there is one.
  std::string events;
  if (blocks_.empty()) events = add("text", "");
  return events + stop();
}

const char* MessagesWriter::stop_reason(FinishReason reason) const {
  if (reason == FinishReason::max_tokens) return "max_tokens";
  if (reason == FinishReason::context_full) return "model_context_window_exceeded";
  if (!stop_.empty()) return "stop_sequence";
  return has_calls_ ? "tool_use" : "end_turn";
}

std::string MessagesWriter::closing(const ApiUsage& usage) {
  return message_event(
             {{"type", "message_delta"},
              {"delta",
               {{"stop_reason", stop_reason(reason_)}, {"stop_sequence", stop_.empty() ? ApiJson() : ApiJson(stop_)}}},
              {"usage", message_usage(usage)}}) +
         message_event({{"type", "message_stop"}});
}

ApiJson MessagesWriter::choice(FinishReason reason) const {
  return {{"id", answer_.id},
          {"type", "message"},
          {"role", "assistant"},
          {"model", answer_.model},
          {"content", blocks_},
          {"stop_reason", stop_reason(reason)},
          {"stop_sequence", stop_.empty() ? ApiJson() : ApiJson(stop_)}};
}

ApiJson MessagesWriter::whole(ApiJson choices, const ApiUsage& usage) const {
  ApiJson message = std::move(choices.at(0));
  message["usage"] = message_usage(usage);
  return message;
}

std::string MessagesWriter::engine_event(std::string_view name, const ApiJson& event) {
  ApiJson json = {{"type", name}};
  json.update(event);
  return message_event(json);
}

std::string MessagesWriter::failure(const ApiError& error) {
  return sse_event("error", anthropic_error(error));
}

std::string MessagesWriter::waiting() const {
  return message_event({{"type", "ping"}});
}

}  // namespace canopy
