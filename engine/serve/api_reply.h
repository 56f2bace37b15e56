#pragma once
// Answers of OpenAI's interface, whole and as streams of server-sent events.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/serve/api_request.h"
#include "engine/serve/reply_parts.h"

namespace canopy {

/// An event of a stream with this JSON.
std::string sse_event(const nlohmann::ordered_json& json);
/// The same with a name: "canopy.round".
std::string sse_event(std::string_view name, const nlohmann::ordered_json& json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
/// What keeps a stream alive while there is nothing to say.
inline constexpr std::string_view kSseComment = ": waiting\n\n";

/// What all answers to one request have in common.
struct ApiAnswer {
  std::string id;       // "chatcmpl-…"
  int64_t created = 0;  // seconds since 1970
  std::string model;
};

/// Tokens of a request, all its replies together.
struct ApiUsage {
  uint64_t prompt = 0, reply = 0;
  uint64_t cached = 0;  // of the prompt, which were not computed again
};
nlohmann::ordered_json to_json(const ApiUsage& usage);

/// "stop", "length"; "tool_calls" where the reply has some.
std::string_view finish_reason_of(FinishReason reason, bool has_calls);

/// Writes one reply of a request, part by part. A call has an id that no other reply has.
class ApiReplyWriter {
 public:
  /// index: of the reply among those of the request. one_call: ApiRequest::one_call.
  ApiReplyWriter(ApiKind kind, ApiAnswer answer, uint32_t index, bool one_call, bool include_usage);

  /// What a stream begins with: the role. Empty for completions.
  std::string opening();
  /// The events of a part of the reply; empty where it has nothing that is told.
  std::string part(const ReplyPart& part);
  /// The event that says why the reply ended.
  std::string ending(FinishReason reason);
  /// The events that end the stream of the request.
  std::string closing(const ApiUsage& usage);

  /// The choice of a whole answer, of all parts so far.
  nlohmann::ordered_json choice(FinishReason reason) const;

  bool has_calls() const { return !calls_.empty(); }

 private:
  nlohmann::ordered_json event(nlohmann::ordered_json choice) const;
  std::string delta(nlohmann::ordered_json delta) const;

  ApiKind kind_;
  ApiAnswer answer_;
  uint32_t index_;
  bool one_call_, include_usage_;
  std::string thinking_, text_;
  std::vector<ToolCall> calls_;
};

/// A whole answer of these choices.
nlohmann::ordered_json whole_answer(ApiKind kind, const ApiAnswer& answer, nlohmann::ordered_json choices,
                                    const ApiUsage& usage);

}  // namespace canopy
