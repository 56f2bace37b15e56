#include "engine/serve/turn_builder.h"

#include <utility>

#include "engine/base/error.h"
#include "engine/format/json_text.h"
#include "engine/text/chat_json.h"

namespace canopy {
namespace {

using TurnJson = nlohmann::ordered_json;

TurnJson text_part(std::string text) {
  return {{"type", "text"}, {"text", std::move(text)}};
}

}  // namespace

TurnJson arguments_object(std::string_view arguments) {
  if (arguments.find_first_not_of(" \t\r\n") == std::string_view::npos) return TurnJson::object();
  try {
    parse_json(arguments, "The call");  // bounds the depth
    TurnJson object = TurnJson::parse(arguments);
    if (object.is_object()) return object;
  } catch (const std::exception&) {  // no JSON
  }
  return {{"arguments", std::string(arguments)}};
}

TurnBuilder::TurnBuilder(const std::vector<ChatTurn>& earlier) {
  for (const ChatTurn& turn : earlier) {
    if (turn.fields.empty()) continue;
    const TurnJson fields = TurnJson::parse(turn.fields);
    const auto calls = fields.find("tool_calls");
    if (calls == fields.end()) continue;
    for (const TurnJson& call : *calls)
      if (call.contains("id") && call.at("id").is_string())
        names_[call.at("id").get<std::string>()] = call.at("function").at("name").get<std::string>();
  }
}

TurnJson& TurnBuilder::turn_of(std::string_view role) {
  if (turns_.empty() || turns_.back().at("role") != role)
    turns_.push_back({{"role", std::string(role)}, {"content", TurnJson::array()}});
  return turns_.back();
}

void TurnBuilder::text(std::string_view role, std::string text) {
  turn_of(role).at("content").push_back(text_part(std::move(text)));
}

void TurnBuilder::thinking(std::string_view text) {
  TurnJson& thought = turn_of("assistant")["reasoning_content"];
  thought = (thought.is_string() ? thought.get<std::string>() : std::string()) + std::string(text);
}

void TurnBuilder::call(const std::string& id, const std::string& name, TurnJson arguments) {
  names_[id] = name;
  TurnJson& calls = turn_of("assistant")["tool_calls"];
  if (calls.is_null()) calls = TurnJson::array();
  calls.push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
}

void TurnBuilder::result(const std::string& id, std::vector<std::string> texts) {
  TurnJson turn = {{"role", "tool"}, {"tool_call_id", id}};
  // Some templates write the name beside the result.
  if (const auto name = names_.find(id); name != names_.end()) turn["name"] = name->second;
  turn["content"] = TurnJson::array();
  for (std::string& text : texts) turn["content"].push_back(text_part(std::move(text)));
  turns_.push_back(std::move(turn));
}

std::vector<ChatTurn> TurnBuilder::finish() const {
  return turns_from_json(turns_);
}

}  // namespace canopy
