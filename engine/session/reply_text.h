#pragma once
// Tokens of a reply to the text that can be shown: whole characters, no control tokens, nothing from a stop string on,
// and of a reply in channels (reply_channels.h) no markup.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/text/reply_channels.h"
#include "engine/text/stop_strings.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8_stream.h"

namespace canopy {

class ReplyText {
 public:
  /// The tokenizer must outlive this. prompt: what the reply follows, which may end inside a channel.
  ReplyText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings, std::span<const uint32_t> prompt = {});

  /// Takes a token and returns the text that it completes.
  std::string push(uint32_t id);

  /// Takes the token that ends the reply, whose own text is never shown.
  std::string push_end(uint32_t id);

  /// Ends the reply: what was held back and proved to be ordinary text.
  std::string finish();

  /// True once a stop string was met.
  bool stopped() const { return stops_.stopped(); }

  /// Bytes of text that the tokens so far completed: of text(), of what is held back, because it may begin a stop
  /// string, and of a stop string.
  size_t completed() const { return completed_; }

  /// All that push and finish returned.
  const std::string& text() const { return text_; }

  /// What of text() is thinking; not told apart where the reply has no channels.
  ThoughtPart thought() const;
  /// Calls of tools in channels of their own, in their order.
  std::vector<ToolCall> calls() const { return channels_ ? channels_->calls() : std::vector<ToolCall>(); }

 private:
  std::string show(const std::string& characters);
  std::string show(const ReplyChannels::Shown& part);
  std::string end_message();

  const Tokenizer& tokenizer_;
  Utf8Stream characters_;
  StopStrings stops_;
  std::optional<ReplyChannels> channels_;
  std::string text_;
  size_t completed_ = 0;
  bool at_start_ = true;  // where some vocabularies have a space that belongs to no text
};

}  // namespace canopy
