#pragma once
// Turns of interfaces that have them in pieces: blocks of Anthropic's messages, items of OpenAI's responses.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/text/chat_turn.h"

namespace canopy {

/// The arguments of a call as an object. What a model wrote may be none: it stands in the field "arguments" then.
nlohmann::ordered_json arguments_object(std::string_view arguments);

/// What one speaker says piece after piece becomes one turn, as templates expect it; each result of a call is a turn of
/// its own.
class TurnBuilder {
 public:
  /// earlier: the turns in front of these, whose calls are known by name.
  explicit TurnBuilder(const std::vector<ChatTurn>& earlier = {});

  /// Opens a turn of this role, where the last one is another's.
  void speak(std::string_view role) { turn_of(role); }
  void text(std::string_view role, std::string text);
  // Of the assistant:
  void thinking(std::string_view text);
  void call(const std::string& id, const std::string& name, nlohmann::ordered_json arguments);
  /// The result of the call of that id.
  void result(const std::string& id, std::vector<std::string> texts);

  bool empty() const { return turns_.empty(); }
  /// Throws bad_input where there is none.
  std::vector<ChatTurn> finish() const;

 private:
  nlohmann::ordered_json& turn_of(std::string_view role);

  nlohmann::ordered_json turns_ = nlohmann::ordered_json::array();  // as turns_from_json() reads them
  std::map<std::string, std::string> names_;                        // of calls, by their ids
};

}  // namespace canopy
