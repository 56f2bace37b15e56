#include "engine/text/chat_json.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/text/chat_template.h"

namespace canopy {
namespace {

using OrderedJson = nlohmann::ordered_json;  // a template may print an object as it is, in its own order

/// A short, safe picture of a value for messages.
std::string picture_of(const OrderedJson& value) {
  if (value.is_object() || value.is_array()) return "an " + std::string(value.type_name());
  return printable(value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace), 64);
}

/// The turn that is being read, for messages.
struct TurnPlace {
  size_t number = 0;

  std::string name() const { return "turn " + std::to_string(number); }
  [[noreturn]] void refuse_field(const std::string& field, const OrderedJson& value,
                                 const std::string& expected) const {
    throw bad_input("The field \"" + printable(field) + "\" of " + name() + " is " + picture_of(value) + "; " +
                    expected + " is expected.");
  }
  [[noreturn]] void refuse_lack(const std::string& field) const {
    throw bad_input("Turn " + std::to_string(number) + " lacks the field \"" + field + "\".");
  }
};

bool is_there(const OrderedJson& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && !found->is_null();
}

const std::string& text_field(const OrderedJson& object, const char* field, const TurnPlace& place) {
  if (!is_there(object, field)) place.refuse_lack(field);
  if (!object.at(field).is_string()) place.refuse_field(field, object.at(field), "a string");
  return object.at(field).get_ref<const std::string&>();
}

/// The texts of a content in parts. What was thought, which some programs write as a part, goes to `thought`.
std::vector<std::string> texts_of(const OrderedJson& parts, std::string& thought, const TurnPlace& place) {
  std::vector<std::string> texts;
  for (const OrderedJson& part : parts) {
    if (part.is_string()) {
      texts.push_back(part.get<std::string>());
      continue;
    }
    if (!part.is_object()) place.refuse_field("content", part, "a string, or a list of parts with a type");
    const std::string type = is_there(part, "type") ? text_field(part, "type", place) : "text";
    if (type == "text" || type == "input_text" || type == "output_text") {
      texts.push_back(text_field(part, "text", place));
    } else if (type == "refusal") {
      texts.push_back(text_field(part, "refusal", place));
    } else if ((type == "thinking" || type == "reasoning") && part.contains(type)) {
      std::string ignored;
      if (part.at(type).is_array()) {
        for (const std::string& text : texts_of(part.at(type), ignored, place)) thought += text;
      } else {
        thought += text_field(part, type.c_str(), place);
      }
    } else {
      throw bad_input("The field \"content\" of " + place.name() + " has a part of the type \"" + printable(type) +
                      "\"; only text is allowed: parts of the type \"text\".");
    }
  }
  return texts;
}

/// The arguments of a call as an object, which is what templates expect.
OrderedJson arguments_of(const OrderedJson& function, const std::string& where) {
  if (!is_there(function, "arguments")) return OrderedJson::object();
  const OrderedJson& given = function.at("arguments");
  OrderedJson arguments = given;
  if (given.is_string()) {
    const std::string& text = given.get_ref<const std::string&>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return OrderedJson::object();
    parse_json(text, where);  // says what is wrong, and bounds the depth
    arguments = OrderedJson::parse(text);
  }
  if (arguments.is_object()) return arguments;
  throw bad_input(where + " is " + picture_of(given) + "; an object, or a string with one, is expected.");
}

OrderedJson calls_of(const OrderedJson& given, const TurnPlace& place) {
  if (!given.is_array()) place.refuse_field("tool_calls", given, "a list of calls");
  OrderedJson calls = OrderedJson::array();
  for (const OrderedJson& call : given) {
    const std::string which = "tool_calls[" + std::to_string(calls.size()) + "]";
    if (!call.is_object()) place.refuse_field(which, call, "an object with a function");
    // Some programs leave the level of "function" out.
    const bool is_flat = !is_there(call, "function");
    OrderedJson function = OrderedJson::object();
    if (!is_flat) function = call.at("function");
    if (is_flat && is_there(call, "name")) function["name"] = call.at("name");
    if (!function.is_object()) place.refuse_field(which + ".function", function, "an object");
    if (!is_there(function, "name") || !function.at("name").is_string()) place.refuse_lack(which + ".function.name");
    function["arguments"] =
        arguments_of(is_flat ? call : function, "The field \"" + which + ".function.arguments\" of " + place.name());
    OrderedJson complete = OrderedJson::object();
    if (!is_flat) complete = call;
    if (is_flat) complete["type"] = "function";
    if (is_flat && is_there(call, "id")) complete["id"] = call.at("id");
    complete["function"] = std::move(function);
    calls.push_back(std::move(complete));
  }
  return calls;
}

void refuse_media(const OrderedJson& turn, const TurnPlace& place) {
  for (const char* field : {"images", "image", "videos", "video", "audio", "audios"}) {
    if (!is_there(turn, field) || turn.at(field).empty()) continue;
    throw bad_input("The field \"" + std::string(field) + "\" of " + place.name() +
                    " has what is no text; only text is allowed.");
  }
}

/// Thinking has several names, and each template knows one of them: all get it.
void name_thinking(OrderedJson& fields, const std::string& thought_in_parts, const TurnPlace& place) {
  constexpr std::array names = {"reasoning_content", "reasoning", "thinking"};
  std::string thought = thought_in_parts;
  for (const char* name : names) {
    if (!fields.contains(name)) continue;
    if (!fields.at(name).is_string()) place.refuse_field(name, fields.at(name), "a string");
    if (thought.empty()) thought = fields.at(name).get<std::string>();
  }
  for (const char* name : names) {
    if (thought.empty()) {
      fields.erase(name);
    } else if (!fields.contains(name)) {
      fields[name] = thought;
    }
  }
}

ChatTurn read_turn(const OrderedJson& json, const TurnPlace& place) {
  if (!json.is_object()) {
    throw bad_input("Turn " + std::to_string(place.number) + " is " + picture_of(json) +
                    "; an object with \"role\" and \"content\" is expected.");
  }
  ChatTurn turn;
  turn.role = text_field(json, "role", place);
  const std::span<const std::string_view> roles = chat_roles();
  if (std::ranges::find(roles, turn.role) == roles.end()) {
    std::string allowed;
    for (const std::string_view role : roles) allowed += (allowed.empty() ? "" : ", ") + std::string(role);
    throw bad_input("The field \"role\" of " + place.name() + " is \"" + printable(turn.role) + "\"; allowed are " +
                    allowed + ".");
  }
  refuse_media(json, place);
  std::string thought;
  const bool may_be_silent = turn.role == "assistant" || turn.role == "tool" || turn.role == "function";
  if (!is_there(json, "content")) {
    // Null, or left out beside calls, is an empty text.
    if (!may_be_silent || (!json.contains("content") && json.size() == 1)) place.refuse_lack("content");
  } else if (const OrderedJson& content = json.at("content"); content.is_string()) {
    turn.content = content.get<std::string>();
  } else if (content.is_array()) {
    turn.parts = texts_of(content, thought, place);
    for (const std::string& part : turn.parts) turn.content += (&part == turn.parts.data() ? "" : "\n") + part;
    if (turn.parts.size() == 1) turn.parts.clear();
  } else {
    place.refuse_field("content", content, "a string, or a list of parts");
  }
  OrderedJson fields = OrderedJson::object();
  for (const auto& [key, value] : json.items()) {
    if (key == "role" || key == "content" || value.is_null()) continue;
    if (key == "function_call") continue;
    fields[key] = key == "tool_calls" ? calls_of(value, place) : value;
  }
  // The older form of one call.
  if (is_there(json, "function_call") && !fields.contains("tool_calls")) {
    OrderedJson call = OrderedJson::object();
    call["type"] = "function";
    call["function"] = json.at("function_call");
    OrderedJson calls = OrderedJson::array();
    calls.push_back(std::move(call));
    fields["tool_calls"] = calls_of(calls, place);
  }
  if (fields.contains("tool_calls") && fields.at("tool_calls").empty()) fields.erase("tool_calls");
  name_thinking(fields, thought, place);
  if (!fields.empty()) turn.fields = fields.dump();
  return turn;
}

}  // namespace

std::vector<ChatTurn> turns_from_json(const OrderedJson& json) {
  if (!json.is_array()) {
    throw bad_input("The conversation is " + picture_of(json) +
                    "; a JSON array of {\"role\", \"content\"} objects is expected, or {\"messages\": [...]}.");
  }
  std::vector<ChatTurn> turns;
  for (const OrderedJson& turn : json) turns.push_back(read_turn(turn, {turns.size()}));
  if (turns.empty()) throw bad_input("The conversation has no turns.");
  return turns;
}

ParsedChat parse_chat(const std::string& text) {
  parse_json(text, "The conversation");  // says what is wrong, and bounds the depth
  const OrderedJson root = OrderedJson::parse(text);
  const bool is_request = root.is_object() && root.contains("messages");
  ParsedChat chat{turns_from_json(is_request ? root.at("messages") : root), {}, {}};
  if (!is_request) return chat;
  for (const auto& [key, value] : root.items()) {
    if (key == "messages" || value.is_null()) continue;
    if (key != "tools") {
      chat.ignored.push_back(key);
    } else if (!value.empty()) {
      chat.tools = value.dump();
    }
  }
  return chat;
}

}  // namespace canopy
