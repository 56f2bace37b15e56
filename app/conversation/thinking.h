#pragma once
// Where in a reply the model thinks: the text in <think> ... </think> in front of its answer, or what came in channels
// of its own (engine/text/reply_channels.h).

#include <cstddef>
#include <cstdint>
#include <string>

#include "app/conversation/message.h"

namespace canopy::app {

/// Bytes of a reply's text. Without thinking everything is the answer.
struct Thinking {
  bool there = false;         // some text was thought, or is about to be
  bool open = false;          // the end of the thinking has not come
  size_t begin = 0, end = 0;  // of what was thought, without tags and blanks around it
  size_t answer = 0;          // first byte of the answer
};

Thinking thinking_of(const Message& message);

/// The answer without the thinking in front of it: what is copied.
std::string answer_of(const Message& message);
/// What was thought, without tags.
std::string thought_of(const Message& message);

/// Tokens that were written before the answer, tags included; 0 where it is not known which token wrote what.
uint32_t thinking_tokens(const Message& message, const Thinking& thinking);

/// One line: "Thinking, 213 tokens", "Thought for 213 tokens", "Thought for 213 tokens, and came to no answer".
std::string thinking_words(const Message& message, const Thinking& thinking);

}  // namespace canopy::app
