#pragma once
// The text of a reply, as it comes, taken apart into what clients get under names of their own: thinking, answer and
// calls of tools, in the forms that the supported families write.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/chat_turn.h"

namespace canopy {

struct ReplyPart {
  std::string thinking;
  std::string answer;
  std::vector<ToolCall> calls;

  bool empty() const { return thinking.empty() && answer.empty() && calls.empty(); }
};

/// Takes a reply apart:
/// - thinking: <think> … </think> in front of the answer, or up to </think> where the prompt had the first of them;
/// - calls, only where tools were offered: <tool_call> … </tool_call> with an object of JSON (Hermes, Qwen) or with
///   <function=…><parameter=…> (Qwen3-Coder) inside; <|tool_call>call:NAME{KEY:VALUE}<tool_call|> (Gemma 4); an answer
///   that is an object or a list of such, as a whole, in a fenced block or behind the mark of a family (Llama 3,
///   Mistral, Phi, older Gemma).
/// What looks like the beginning of one of these is held back until it is clear what it is, and what is none is
/// answer.
class ReplyParts {
 public:
  /// tools: names of the tools that were offered. begins_thinking: the prompt ended inside the thinking.
  ReplyParts(std::vector<std::string> tools, bool begins_thinking);

  ReplyPart push(std::string_view text);
  /// Of a reply in channels (ReplyChannels), whose thinking is told apart already.
  ReplyPart push_apart(std::string_view thinking, std::string_view answer);
  /// The rest.
  ReplyPart finish();
  /// Bytes that are held back.
  size_t held() const { return held_.size(); }

 private:
  enum class State { start, thinking, behind_thinking, answer, call, perhaps_call };

  bool step(ReplyPart& part, bool ends);
  void think(std::string_view text, ReplyPart& part);
  void take_call(std::string_view inside, std::string_view whole, ReplyPart& part);

  std::vector<std::string> tools_;
  State state_ = State::start;
  bool begins_thinking_ = false;
  bool answered_ = false;  // some answer was given
  std::string held_;
  bool thought_ = false;  // some thinking was given
  std::string blanks_;    // at the end of the thinking: part of it only if more comes
};

/// The calls in a text that has nothing else: an object {"name", "arguments"} (or "parameters"), a list of these, or
/// several behind each other. `names`: those that are allowed; empty: any. Empty where the text is anything else.
std::vector<ToolCall> calls_in_json(std::string_view text, const std::vector<std::string>& names);

}  // namespace canopy
