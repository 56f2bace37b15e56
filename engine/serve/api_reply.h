#pragma once
// Answers, whole and as streams of server-sent events: what writers of all interfaces have in common, and the one of
// OpenAI's /v1/chat/completions and /v1/completions.

#include <cstdint>
#include <optional>
#include <span>
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
  uint64_t cached = 0;    // of the prompt, which were not computed again
  uint64_t thinking = 0;  // of the reply, as the tokenizer counts what was thought
};
nlohmann::ordered_json to_json(const ApiUsage& usage);

struct ApiTokenLogprob {
  std::string bytes;   // of the token
  double logprob = 0;  // natural; NaN of the first token of a prompt
};

/// A token as answers name it.
struct ApiToken {
  ApiTokenLogprob chosen;
  std::vector<ApiTokenLogprob> likeliest;  // the largest first
  size_t begin = 0;                        // in the text of its choice, in bytes: of completions
};

/// "stop", "length"; "tool_calls" where the reply has some.
std::string_view finish_reason_of(FinishReason reason, bool has_calls);

/// Writes one reply of a request, part by part, in the form of its interface. A call has an id that no other reply has.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  /// What a stream begins with; may be empty.
  virtual std::string opening() = 0;
  /// Takes tokens whose text comes with the next part: its first event names them, or the one that says why the reply
  /// ended. Where none are given, answers have no log probabilities; interfaces without such do not tell them.
  virtual void tokens(std::vector<ApiToken>) {}
  /// The events of a part of the reply; empty where it has nothing that is told.
  virtual std::string part(const ReplyPart& part) = 0;
  /// Told in front of ending(): the stop string of the request that ended the reply.
  virtual void stopped_at(const std::string&) {}
  /// The events that say that the reply ended.
  virtual std::string ending(FinishReason reason) = 0;
  /// The events that end the stream of the request.
  virtual std::string closing(const ApiUsage& usage) = 0;

  /// The reply as it stands in a whole answer, behind ending().
  virtual nlohmann::ordered_json choice(FinishReason reason) const = 0;
  /// A whole answer of these choices.
  virtual nlohmann::ordered_json whole(nlohmann::ordered_json choices, const ApiUsage& usage) const = 0;

  /// An event of the engine (event_json.h).
  virtual std::string engine_event(std::string_view name, const nlohmann::ordered_json& event) {
    return sse_event(name, event);
  }
  /// Why there is no more.
  virtual std::string failure(const ApiError& error) { return sse_event(to_json(error)); }
  /// What keeps a stream alive while there is nothing to say.
  virtual std::string waiting() const { return std::string(kSseComment); }
};

class ApiReplyWriter final : public AnswerWriter {
 public:
  /// index: of the reply among those of the request. one_call: ApiRequest::one_call.
  ApiReplyWriter(ApiKind kind, ApiAnswer answer, uint32_t index, bool one_call, bool include_usage);

  /// The role. Empty for completions.
  std::string opening() override;
  void tokens(std::vector<ApiToken> tokens) override;
  std::string part(const ReplyPart& part) override;
  std::string ending(FinishReason reason) override;
  std::string closing(const ApiUsage& usage) override;
  nlohmann::ordered_json choice(FinishReason reason) const override;
  nlohmann::ordered_json whole(nlohmann::ordered_json choices, const ApiUsage& usage) const override;

  bool has_calls() const { return !calls_.empty(); }

 private:
  nlohmann::ordered_json event(nlohmann::ordered_json choice) const;
  std::string delta(nlohmann::ordered_json delta);
  std::string text_event(const std::string& text, nlohmann::ordered_json reason);
  nlohmann::ordered_json logprobs_of(std::span<const ApiToken> tokens) const;
  nlohmann::ordered_json take_logprobs();

  ApiKind kind_;
  ApiAnswer answer_;
  uint32_t index_;
  bool one_call_, include_usage_;
  std::string thinking_, text_;
  std::vector<ToolCall> calls_;
  std::vector<ApiToken> tokens_;
  size_t told_tokens_ = 0;  // of these, those that an event has named
};

}  // namespace canopy
