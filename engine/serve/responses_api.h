#pragma once
// OpenAI's /v1/responses: requests and answers. The shapes are those that its published client for Python has types
// for; text, reasoning and calls of functions of them.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/serve/api_reply.h"
#include "engine/serve/api_request.h"
#include "engine/text/chat_turn.h"

namespace canopy {

/// The turns of an earlier response with its output. Throws ApiError where it is not known.
using EarlierTurns = std::function<std::vector<ChatTurn>(const std::string& id)>;

/// Reads the body of a request. Throws ApiError naming the field, its value and what is allowed.
ApiRequest parse_responses_request(std::string_view body, const ApiLimits& limits, const EarlierTurns& earlier);

/// The turn of a response's output, for requests that go on from it; none where it is empty.
std::vector<ChatTurn> turns_of_output(const nlohmann::ordered_json& output);

/// Writes a reply as items: reasoning, message, function_call.
class ResponsesWriter final : public AnswerWriter {
 public:
  /// repeated: ApiRequest::repeated.
  ResponsesWriter(ApiAnswer answer, nlohmann::ordered_json repeated, bool one_call);

  std::string opening() override;
  std::string part(const ReplyPart& part) override;
  std::string ending(FinishReason reason) override;
  std::string closing(const ApiUsage& usage) override;
  nlohmann::ordered_json choice(FinishReason reason) const override;
  nlohmann::ordered_json whole(nlohmann::ordered_json choices, const ApiUsage& usage) const override;
  std::string engine_event(std::string_view name, const nlohmann::ordered_json& json) override;
  std::string failure(const ApiError& error) override;

 private:
  enum class Open { none, reasoning, message };

  std::string event(std::string_view type, const nlohmann::ordered_json& fields);
  std::string item_id(const char* prefix) const;
  /// Where an event is: the item that is open and, of it, the text.
  nlohmann::ordered_json place(bool in_text) const;
  std::string add(Open kind, const std::string& text);
  std::string open(Open kind);
  std::string close(const char* status);
  std::string call(const ToolCall& call);
  nlohmann::ordered_json response(const char* status) const;

  ApiAnswer answer_;
  nlohmann::ordered_json repeated_;
  bool one_call_;
  uint64_t sequence_ = 0;
  nlohmann::ordered_json output_ = nlohmann::ordered_json::array();
  Open open_ = Open::none;  // the last item of these
  std::string text_;        // of it
  bool has_calls_ = false;
  FinishReason reason_ = FinishReason::failed;
  int64_t completed_ = 0;  // seconds since 1970; 0: not yet
};

}  // namespace canopy
