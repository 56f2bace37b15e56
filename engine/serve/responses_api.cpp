#include "engine/serve/responses_api.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/serve/api_fields.h"
#include "engine/serve/turn_builder.h"

namespace canopy {
namespace {

constexpr size_t kMostMetadata = 16, kMostMetadataKey = 64, kMostMetadataValue = 512;

/// The texts of a string, or of a list of parts of text.
std::vector<std::string> texts_of_parts(const ApiJson& value, const std::string& place) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) refuse_value(place, value, "a string or a list of parts is allowed");
  std::vector<std::string> texts;
  for (const ApiJson& part : value) {
    const ApiFields fields(part, place_in(place, texts.size()));
    const std::string type = fields.required_text("type");
    if (type == "refusal") {
      texts.push_back(fields.required_text("refusal"));
    } else if (type == "input_text" || type == "output_text" || type == "text") {
      texts.push_back(fields.required_text("text"));
    } else {
      refuse_type(fields.name("type"), type, "\"input_text\" and \"output_text\" are allowed");
    }
  }
  return texts;
}

/// What was thought: the text of it, or where that is not there its summary. What is encrypted nobody here can read.
std::string reasoning_of(const ApiFields& item) {
  std::string text;
  for (const char* list : {"content", "summary"}) {
    const ApiJson* parts = item.find(list);
    if (parts == nullptr) continue;
    if (!parts->is_array()) refuse_value(item.name(list), *parts, "a list of parts is allowed");
    for (size_t i = 0; i < parts->size(); ++i)
      text += ApiFields((*parts)[i], place_in(item.name(list), i)).required_text("text");
    if (!text.empty()) break;
  }
  return text;
}

/// The arguments of a call: a string with an object, as the interface has it.
ApiJson arguments_of_item(const ApiFields& item) {
  const std::string text = item.required_text("arguments");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return ApiJson::object();
  try {
    parse_json(text, "The field \"" + item.name("arguments") + "\"");  // says what is wrong, and bounds the depth
  } catch (const Error& error) {
    refuse(item.name("arguments"), error.what());
  }
  ApiJson arguments = ApiJson::parse(text);
  if (!arguments.is_object())
    refuse_value(item.name("arguments"), *item.find("arguments"), "a string with an object is allowed");
  return arguments;
}

void read_item(const ApiFields& item, TurnBuilder& turns) {
  std::string type = item.text("type");
  if (type.empty() && item.find("role") != nullptr) type = "message";
  if (type == "message") {
    std::string role = item.required_text("role");
    item.word("role", {"user", "assistant", "system", "developer"});
    if (role == "developer") role = "system";
    const ApiJson* content = item.find("content");
    if (content == nullptr)
      refuse(item.name("content"),
             "The field \"" + item.name("content") + "\" is missing; a string or a list of parts is expected.");
    turns.speak(role);
    for (std::string& text : texts_of_parts(*content, item.name("content"))) turns.text(role, std::move(text));
  } else if (type == "function_call") {
    turns.call(item.required_text("call_id"), item.required_text("name"), arguments_of_item(item));
  } else if (type == "function_call_output") {
    const ApiJson* output = item.find("output");
    if (output == nullptr)
      refuse(item.name("output"), "The field \"" + item.name("output") + "\" is missing; a string is expected.");
    turns.result(item.required_text("call_id"), texts_of_parts(*output, item.name("output")));
  } else if (type == "reasoning") {
    const std::string text = reasoning_of(item);
    if (!text.empty()) turns.thinking(text);
  } else {
    refuse_type(item.name("type"), type,
                "\"message\", \"function_call\", \"function_call_output\" and \"reasoning\" are allowed");
  }
}

void put_instructions(const std::string& text, std::vector<ChatTurn>& turns) {
  if (text.empty()) return;
  if (turns.empty() || turns.front().role != "system") {
    turns.insert(turns.begin(), ChatTurn{"system", text});
    return;
  }
  // Most templates have a place for one system message.
  ChatTurn& first = turns.front();
  if (first.parts.empty()) first.parts = {first.content};
  first.parts.insert(first.parts.begin(), text);
  first.content = text + "\n" + first.content;
}

void read_input(const ApiFields& fields, const EarlierTurns& earlier, ApiRequest& request) {
  const std::string previous = fields.text("previous_response_id");
  std::vector<ChatTurn> turns;
  if (!previous.empty()) turns = earlier(previous);
  const ApiJson* input = fields.find("input");
  if (input == nullptr) refuse("input", "The field \"input\" is missing; a string or a list of items is expected.");
  TurnBuilder added(turns);
  if (input->is_string()) {
    added.text("user", input->get<std::string>());
  } else if (!input->is_array() || input->empty()) {
    refuse_value("input", *input, "a string or a list of at least one item is allowed");
  } else {
    for (size_t i = 0; i < input->size(); ++i) read_item(ApiFields((*input)[i], place_in("input", i)), added);
  }
  if (!added.empty()) {
    try {
      for (ChatTurn& turn : added.finish()) turns.push_back(std::move(turn));
    } catch (const Error& error) {
      refuse("input", error.what());
    }
  }
  if (turns.empty()) refuse_value("input", *input, "at least one message is needed");
  request.store = fields.boolean("store", true);
  if (request.store) request.kept = turns;
  put_instructions(fields.text("instructions"), turns);
  request.turns = std::move(turns);
}

/// Returns the tools as the answer repeats them.
ApiJson read_response_tools(const ApiFields& fields, ApiRequest& request) {
  ApiJson functions = ApiJson::array(), repeated = ApiJson::array();
  std::vector<std::string> names;
  if (const ApiJson* tools = find_tools(fields, "functions")) {
    for (const ApiJson& tool : *tools) {
      const ApiFields parts(tool, place_in("tools", names.size()));
      const std::string type = parts.required_text("type");
      if (type != "function") refuse_type(parts.name("type"), type, "\"function\" is allowed");
      ApiJson function = read_function(parts, names);
      if (const ApiJson* parameters = parts.find("parameters")) {
        if (!parameters->is_object()) refuse_value(parts.name("parameters"), *parameters, "an object is allowed");
        function["parameters"] = *parameters;
      }
      ApiJson told = {{"type", "function"}, {"name", names.back()}, {"parameters", nullptr}, {"strict", nullptr}};
      if (parts.find("strict") != nullptr) told["strict"] = parts.boolean("strict", false);
      told.update(function);
      repeated.push_back(std::move(told));
      functions.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
  }
  if (const ApiJson* choice = fields.find("tool_choice")) {
    constexpr const char* allowed = R"("auto", "none", "required" and {"type": "function", "name": ...} are allowed)";
    const std::string word = choice->is_string() ? choice->get<std::string>() : "";
    if (choice->is_object()) {
      const ApiFields named(*choice, "tool_choice");
      const std::string type = named.required_text("type");
      if (type != "function") refuse_type("tool_choice.type", type, allowed);
      request.tool_choice = ToolChoice::named;
      request.tool_named = named.required_text("name");
      if (std::ranges::find(names, request.tool_named) == names.end())
        refuse_value("tool_choice.name", *named.find("name"), "a name of \"tools\" is allowed");
    } else if (word == "none") {
      request.tool_choice = ToolChoice::none;
    } else if (word == "required") {
      request.tool_choice = ToolChoice::required;
    } else if (word != "auto") {
      refuse_value("tool_choice", *choice, allowed);
    }
  }
  request.one_call = !fields.boolean("parallel_tool_calls", true);
  offer_tools(functions, std::move(names), request);
  return repeated;
}

ApiJson read_metadata(const ApiFields& fields) {
  const ApiJson* value = fields.find("metadata");
  if (value == nullptr) return ApiJson::object();
  const std::string allowed = "an object of up to " + std::to_string(kMostMetadata) + " strings is allowed, of up to " +
                              std::to_string(kMostMetadataValue) + " bytes, with names of up to " +
                              std::to_string(kMostMetadataKey);
  if (!value->is_object() || value->size() > kMostMetadata) refuse_value("metadata", *value, allowed);
  for (const auto& [key, each] : value->items())
    if (key.size() > kMostMetadataKey || !each.is_string() ||
        each.get_ref<const std::string&>().size() > kMostMetadataValue)
      refuse_value("metadata." + key, each, allowed);
  return *value;
}

void refuse_what_responses_lack(const ApiFields& fields) {
  refuse_what_no_form_does(fields);
  struct Undone {
    const char* field;
    const char* instead;
  };
  for (const Undone& each : {
           Undone{"conversation", "use \"previous_response_id\""},
           Undone{"prompt", "use \"instructions\" and \"input\""},
           Undone{"moderation", "leave it out"},
       })
    if (const ApiJson* value = fields.find(each.field)) refuse_undone(each.field, *value, each.instead);
  if (fields.boolean("background", false))
    refuse_undone("background", *fields.find("background"), "false is allowed: wait for the answer");
  if (const auto truncation = fields.word("truncation", {"disabled", "auto"}); truncation == "auto")
    refuse_undone("truncation", *fields.find("truncation"), "\"disabled\" is allowed");
  for (const char* name : {"top_logprobs", "n"})
    if (fields.whole(name, 0, 1 << 20).value_or(0) > (std::string_view(name) == "n" ? 1 : 0))
      refuse_undone(name, *fields.find(name), "leave it out");
  // What else may be included belongs to tools that are not there. Thinking is not encrypted: it comes as it is.
  if (const ApiJson* include = fields.find("include")) {
    if (!include->is_array()) refuse_value("include", *include, "a list of names is allowed");
    for (const ApiJson& each : *include) {
      if (!each.is_string()) refuse_value("include", each, "a list of names is allowed");
      if (each == "message.output_text.logprobs") refuse_undone("include", each, "leave it out");
    }
  }
  if (const ApiJson* edits = fields.find("context_management"); edits != nullptr && !edits->empty())
    refuse_undone("context_management", *edits, "leave it out: the input is read as it is");
  if (const ApiJson* value = fields.find("text")) {
    const ApiFields text(*value, "text");
    if (const ApiJson* format = text.find("format")) {
      const std::string type = ApiFields(*format, "text.format").required_text("type");
      if (type != "text") refuse_type("text.format.type", type, "\"text\" is allowed");
    }
    if (const auto verbosity = text.word("verbosity", {"low", "medium", "high"}); verbosity && verbosity != "medium")
      refuse_undone("text.verbosity", *text.find("verbosity"), "\"medium\" is allowed");
  }
}

/// Returns the field as the answer repeats it.
ApiJson read_reasoning(const ApiFields& fields, ApiRequest& request) {
  ApiJson repeated = {{"effort", nullptr}, {"summary", nullptr}};
  const ApiJson* value = fields.find("reasoning");
  if (value == nullptr) return repeated;
  const ApiFields reasoning(*value, "reasoning");
  if (const auto effort = reasoning.word("effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"})) {
    request.thinking = *effort != "none";
    repeated["effort"] = *effort;
  }
  // What was thought is told as it is, whatever is asked for; no summary of it is made.
  reasoning.word("summary", {"auto", "concise", "detailed"});
  return repeated;
}

/// A number as it was given, or what stands for it.
ApiJson number_or(const ApiFields& fields, const char* field, float fallback) {
  const ApiJson* value = fields.find(field);
  return value != nullptr ? *value : ApiJson(std::round(static_cast<double>(fallback) * 1e6) / 1e6);
}

ApiJson text_or_null(const ApiFields& fields, const char* field) {
  return fields.find(field) != nullptr ? ApiJson(fields.text(field)) : ApiJson();
}

ApiJson response_usage(const ApiUsage& usage) {
  return {{"input_tokens", usage.prompt},
          {"input_tokens_details", {{"cached_tokens", usage.cached}, {"cache_write_tokens", 0}}},
          {"output_tokens", usage.reply},
          {"output_tokens_details", {{"reasoning_tokens", usage.thinking}}},
          {"total_tokens", usage.prompt + usage.reply}};
}

bool is_cut(FinishReason reason) {
  return reason == FinishReason::max_tokens || reason == FinishReason::context_full;
}

ApiJson text_content(bool reasons, const std::string& text) {
  if (reasons) return {{"type", "reasoning_text"}, {"text", text}};
  return {{"type", "output_text"}, {"annotations", ApiJson::array()}, {"logprobs", ApiJson::array()}, {"text", text}};
}

}  // namespace

ApiRequest parse_responses_request(std::string_view body, const ApiLimits& limits, const EarlierTurns& earlier) {
  const ApiJson json = parse_api_body(body);
  const ApiFields fields(json, "");
  ApiRequest request;
  request.dialect = ApiDialect::responses;
  refuse_what_responses_lack(fields);
  request.model = fields.text("model");
  request.stream = fields.boolean("stream", false);
  if (const auto most = fields.whole("max_output_tokens", 1, std::numeric_limits<int32_t>::max()))
    request.max_tokens = static_cast<uint32_t>(*most);
  read_sampling(fields, limits, request);
  read_stops(fields, "stop", request);
  read_speculation(fields, limits, request);
  read_input(fields, earlier, request);
  read_canopy(fields, limits, request);
  ApiJson tools = read_response_tools(fields, request);
  ApiJson reasoning = read_reasoning(fields, request);
  const ApiJson* choice = fields.find("tool_choice");
  request.repeated = {{"background", false},
                      {"instructions", text_or_null(fields, "instructions")},
                      {"max_output_tokens", request.max_tokens ? ApiJson(*request.max_tokens) : ApiJson()},
                      {"max_tool_calls", nullptr},
                      {"metadata", read_metadata(fields)},
                      {"parallel_tool_calls", fields.boolean("parallel_tool_calls", true)},
                      {"previous_response_id", text_or_null(fields, "previous_response_id")},
                      {"prompt_cache_key", text_or_null(fields, "prompt_cache_key")},
                      {"reasoning", std::move(reasoning)},
                      {"safety_identifier", text_or_null(fields, "safety_identifier")},
                      {"service_tier", "default"},
                      {"store", request.store},
                      {"temperature", number_or(fields, "temperature", limits.temperature)},
                      {"presence_penalty", number_or(fields, "presence_penalty", 0)},
                      {"frequency_penalty", number_or(fields, "frequency_penalty", 0)},
                      {"text", {{"format", {{"type", "text"}}}, {"verbosity", "medium"}}},
                      {"tool_choice", choice != nullptr ? *choice : ApiJson("auto")},
                      {"tools", std::move(tools)},
                      {"top_logprobs", 0},
                      {"top_p", number_or(fields, "top_p", 1)},
                      {"truncation", "disabled"}};
  return request;
}

std::vector<ChatTurn> turns_of_output(const ApiJson& output) {
  TurnBuilder turns;
  for (const ApiJson& item : output) {
    const std::string& type = item.at("type").get_ref<const std::string&>();
    if (type == "function_call") {
      turns.call(item.at("call_id").get<std::string>(), item.at("name").get<std::string>(),
                 arguments_object(item.at("arguments").get_ref<const std::string&>()));
      continue;
    }
    for (const ApiJson& part : item.at("content")) {
      const std::string& text = part.at("text").get_ref<const std::string&>();
      if (type == "reasoning") {
        turns.thinking(text);
      } else {
        turns.text("assistant", text);
      }
    }
  }
  return turns.empty() ? std::vector<ChatTurn>() : turns.finish();
}

ResponsesWriter::ResponsesWriter(ApiAnswer answer, ApiJson repeated, bool one_call)
    : answer_(std::move(answer)), repeated_(std::move(repeated)), one_call_(one_call) {}

ApiJson ResponsesWriter::response(const char* status) const {
  const bool cut = std::string_view(status) == "incomplete";
  ApiJson json = {{"id", answer_.id},
                  {"object", "response"},
                  {"created_at", answer_.created},
                  {"status", status},
                  {"completed_at", completed_ > 0 && !cut ? ApiJson(completed_) : ApiJson()},
                  {"error", nullptr},
                  {"incomplete_details", cut ? ApiJson({{"reason", "max_output_tokens"}}) : ApiJson()},
                  {"model", answer_.model},
                  {"output", output_}};
  json.update(repeated_);
  json["usage"] = nullptr;
  return json;
}

std::string ResponsesWriter::event(std::string_view type, const ApiJson& fields) {
  ApiJson json = {{"type", type}, {"sequence_number", sequence_++}};
  json.update(fields);
  return sse_event(type, json);
}

std::string ResponsesWriter::item_id(const char* prefix) const {
  return std::string(prefix) + "_" + answer_.id.substr(answer_.id.find('_') + 1) + "_" + std::to_string(output_.size());
}

ApiJson ResponsesWriter::place(bool in_text) const {
  ApiJson json = {{"item_id", output_.back().at("id")}, {"output_index", output_.size() - 1}};
  if (in_text) json["content_index"] = 0;
  return json;
}

std::string ResponsesWriter::opening() {
  const ApiJson fields = {{"response", response("in_progress")}};
  std::string events = event("response.created", fields);
  return events + event("response.in_progress", fields);
}

std::string ResponsesWriter::open(Open kind) {
  std::string events = close("completed");
  const bool reasons = kind == Open::reasoning;
  ApiJson item = {
      {"id", item_id(reasons ? "rs" : "msg")}, {"type", reasons ? "reasoning" : "message"}, {"status", "in_progress"}};
  if (reasons) {
    item["summary"] = ApiJson::array();
  } else {
    item["role"] = "assistant";
  }
  item["content"] = ApiJson::array();
  output_.push_back(item);
  open_ = kind;
  text_.clear();
  events += event("response.output_item.added", {{"output_index", output_.size() - 1}, {"item", item}});
  ApiJson part = place(true);
  part["part"] = text_content(reasons, "");
  return events + event("response.content_part.added", part);
}

std::string ResponsesWriter::add(Open kind, const std::string& text) {
  std::string events;
  if (open_ != kind) events = open(kind);
  text_ += text;
  ApiJson delta = place(true);
  delta["delta"] = text;
  if (kind == Open::reasoning) return events + event("response.reasoning_text.delta", delta);
  delta["logprobs"] = ApiJson::array();
  return events + event("response.output_text.delta", delta);
}

std::string ResponsesWriter::close(const char* status) {
  if (open_ == Open::none) return {};
  const bool reasons = std::exchange(open_, Open::none) == Open::reasoning;
  const ApiJson content = text_content(reasons, text_);
  ApiJson done = place(true);
  done["text"] = text_;
  if (!reasons) done["logprobs"] = ApiJson::array();
  std::string events = event(reasons ? "response.reasoning_text.done" : "response.output_text.done", done);
  ApiJson part = place(true);
  part["part"] = content;
  events += event("response.content_part.done", part);
  ApiJson& item = output_.back();
  item["status"] = status;
  item["content"].push_back(content);
  return events + event("response.output_item.done", {{"output_index", output_.size() - 1}, {"item", item}});
}

std::string ResponsesWriter::call(const ToolCall& call) {
  if (one_call_ && has_calls_) return {};
  has_calls_ = true;
  std::string events = close("completed");
  output_.push_back({{"id", item_id("fc")},
                     {"type", "function_call"},
                     {"status", "in_progress"},
                     {"arguments", ""},
                     {"call_id", item_id("call")},
                     {"name", call.name}});
  events += event("response.output_item.added", {{"output_index", output_.size() - 1}, {"item", output_.back()}});
  ApiJson delta = place(false);
  delta["delta"] = call.arguments;
  events += event("response.function_call_arguments.delta", delta);
  ApiJson done = place(false);
  done["arguments"] = call.arguments;
  events += event("response.function_call_arguments.done", done);
  output_.back()["status"] = "completed";
  output_.back()["arguments"] = call.arguments;
  return events + event("response.output_item.done", {{"output_index", output_.size() - 1}, {"item", output_.back()}});
}

std::string ResponsesWriter::part(const ReplyPart& part) {
  std::string events;
  if (!part.thinking.empty()) events += add(Open::reasoning, part.thinking);
  if (!part.answer.empty()) events += add(Open::message, part.answer);
  for (const ToolCall& each : part.calls) events += call(each);
  return events;
}

std::string ResponsesWriter::ending(FinishReason reason) {
  reason_ = reason;
  completed_ = static_cast<int64_t>(std::time(nullptr));
  std::string events;
  if (output_.empty()) events = open(Open::message);
  return events + close(is_cut(reason) ? "incomplete" : "completed");
}

std::string ResponsesWriter::closing(const ApiUsage& usage) {
  const bool cut = is_cut(reason_);
  ApiJson json = response(cut ? "incomplete" : "completed");
  json["usage"] = response_usage(usage);
  // The last line is Open Responses'; OpenAI's clients end there, too.
  return event(cut ? "response.incomplete" : "response.completed", {{"response", std::move(json)}}) +
         std::string(kSseDone);
}

ApiJson ResponsesWriter::choice(FinishReason reason) const {
  return response(is_cut(reason) ? "incomplete" : "completed");
}

ApiJson ResponsesWriter::whole(ApiJson choices, const ApiUsage& usage) const {
  ApiJson json = std::move(choices.at(0));
  json["usage"] = response_usage(usage);
  return json;
}

std::string ResponsesWriter::engine_event(std::string_view name, const ApiJson& json) {
  return event(name, json);
}

std::string ResponsesWriter::failure(const ApiError& error) {
  ApiJson json = response("failed");
  json["error"] = {{"code", "server_error"}, {"message", error.what()}};
  return event("response.failed", {{"response", std::move(json)}});
}

}  // namespace canopy
