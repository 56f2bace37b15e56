#pragma once
// Anthropic's interface, /v1/messages and /v1/messages/count_tokens: requests, answers and errors. The shapes are those
// that its published client for Python has types for.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/serve/api_reply.h"
#include "engine/serve/api_request.h"

namespace canopy {

/// Reads the body of a request. only_counts: of count_tokens, which needs no max_tokens. Throws ApiError naming the
/// field, its value and what is allowed.
ApiRequest parse_messages_request(std::string_view body, const ApiLimits& limits, bool only_counts = false);

/// {"type": "error", "error": {"type", "message"}}, with the type that the status has there.
nlohmann::ordered_json anthropic_error(const ApiError& error);

/// Writes a reply as one message of blocks: thinking, text, tool_use.
class MessagesWriter final : public AnswerWriter {
 public:
  /// prompt_tokens: told at the beginning of a stream. omits_thinking: blocks of thinking are empty.
  MessagesWriter(ApiAnswer answer, uint64_t prompt_tokens, bool one_call, bool omits_thinking);

  std::string opening() override;
  std::string part(const ReplyPart& part) override;
  void stopped_at(const std::string& stop) override { stop_ = stop; }
  std::string ending(FinishReason reason) override;
  std::string closing(const ApiUsage& usage) override;
  nlohmann::ordered_json choice(FinishReason reason) const override;
  nlohmann::ordered_json whole(nlohmann::ordered_json choices, const ApiUsage& usage) const override;
  std::string engine_event(std::string_view name, const nlohmann::ordered_json& event) override;
  std::string failure(const ApiError& error) override;
  std::string waiting() const override;

 private:
  /// Text of a block of this type, in the one that is open or a new one.
  std::string add(const char* type, const std::string& text);
  std::string call(const ToolCall& call);
  std::string start(const nlohmann::ordered_json& block);
  std::string delta(const nlohmann::ordered_json& delta) const;
  std::string stop();
  const char* stop_reason(FinishReason reason) const;

  ApiAnswer answer_;
  uint64_t prompt_tokens_;
  bool one_call_, omits_thinking_;
  nlohmann::ordered_json blocks_ = nlohmann::ordered_json::array();
  bool open_ = false;  // the last of these
  bool has_calls_ = false;
  std::string stop_;
  FinishReason reason_ = FinishReason::failed;
};

}  // namespace canopy
