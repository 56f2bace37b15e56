#include "app/conversation/thinking.h"

#include <algorithm>
#include <string_view>

#include "app/base/figures.h"

namespace canopy::app {
namespace {

constexpr std::string_view kThinkTag = "<think>", kThinkEnd = "</think>", kThinkBlanks = " \t\r\n";

}  // namespace

Thinking thinking_of(const Message& message) {
  Thinking found;
  if (message.role != Role::assistant) return found;
  const std::string_view text = message.text;
  if (message.thought.told_apart) {
    found.open = message.thought.open;
    found.answer = std::min<size_t>(message.thought.bytes, text.size());
    found.begin = std::min(text.find_first_not_of(kThinkBlanks), found.answer);
    found.end = text.substr(0, found.answer).find_last_not_of(kThinkBlanks) + 1;
    found.end = std::max(found.begin, found.end);
    found.there = found.end > found.begin || (found.open && message.writing);
    return found;
  }
  const size_t first = std::min(text.find_first_not_of(kThinkBlanks), text.size());
  const std::string_view rest = text.substr(first);
  size_t begin = 0;
  if (rest.starts_with(kThinkTag)) {
    begin = first + kThinkTag.size();
  } else if (message.writing && !rest.empty() && kThinkTag.starts_with(rest)) {
    begin = text.size();  // the tag is being written
  } else if (!message.begins_thinking) {
    return found;
  }
  const size_t tag = text.find(kThinkEnd, begin);
  found.open = tag == std::string_view::npos;
  found.begin = std::min(text.find_first_not_of(kThinkBlanks, begin), text.size());
  found.end = std::max(found.begin, found.open ? text.size() : tag);
  while (found.end > found.begin && kThinkBlanks.find(text[found.end - 1]) != std::string_view::npos) --found.end;
  found.answer =
      found.open ? text.size() : std::min(text.find_first_not_of(kThinkBlanks, tag + kThinkEnd.size()), text.size());
  found.there = found.end > found.begin || (found.open && message.writing);
  return found;
}

std::string answer_of(const Message& message) {
  return message.text.substr(thinking_of(message).answer);
}

std::string thought_of(const Message& message) {
  const Thinking thinking = thinking_of(message);
  return message.text.substr(thinking.begin, thinking.end - thinking.begin);
}

uint32_t thinking_tokens(const Message& message, const Thinking& thinking) {
  const auto end = std::partition_point(message.spans.begin(), message.spans.end(),
                                        [&](const TokenSpan& s) { return s.end <= thinking.end; });
  auto count = static_cast<uint32_t>(end - message.spans.begin());
  if (end != message.spans.end() && end->begin < thinking.end) ++count;  // one that goes on into the closing tag
  return thinking.open ? std::max(count, message.tokens) : count;
}

std::string thinking_words(const Message& message, const Thinking& thinking) {
  const uint32_t tokens = thinking_tokens(message, thinking);
  const std::string amount = tokens == 0 ? "" : counted(tokens, "token", "tokens");
  if (message.writing && thinking.open) return amount.empty() ? "Thinking" : "Thinking, " + amount;
  const std::string past = amount.empty() ? "Thought" : "Thought for " + amount;
  return thinking.open ? past + ", and came to no answer" : past;
}

}  // namespace canopy::app
