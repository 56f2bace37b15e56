#pragma once
// Tokens of a reply to the text that can be shown: whole characters, no control tokens, nothing from a stop string on.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/text/stop_strings.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8_stream.h"

namespace canopy {

class ReplyText {
 public:
  /// The tokenizer must outlive this.
  ReplyText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings)
      : tokenizer_(tokenizer), stops_(std::move(stop_strings)) {}

  /// Takes a token and returns the text that it completes.
  std::string push(uint32_t id);

  /// Ends the reply: what was held back and proved to be ordinary text.
  std::string finish();

  /// True once a stop string was met.
  bool stopped() const { return stops_.stopped(); }

  /// Bytes of text that the tokens so far completed: of text(), of what is held back, because it may begin a stop
  /// string, and of a stop string.
  size_t completed() const { return completed_; }

  /// All that push and finish returned.
  const std::string& text() const { return text_; }

 private:
  const Tokenizer& tokenizer_;
  Utf8Stream characters_;
  StopStrings stops_;
  std::string text_;
  size_t completed_ = 0;
  bool at_start_ = true;  // where some vocabularies have a space that belongs to no text
};

}  // namespace canopy
