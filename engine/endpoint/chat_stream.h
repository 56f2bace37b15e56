#pragma once
// The reply of an OpenAI-compatible server as it comes: server-sent events with one JSON object each.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace canopy {

/// Limits of what a server may send.
inline constexpr size_t kMostReplyBytes = size_t{8} << 20;  // of all events together
inline constexpr size_t kMostEventBytes = size_t{1} << 20;

/// Takes the bytes of a reply in any pieces.
class ChatStream {
 public:
  /// New text of the reply, whole characters; may be empty. Throws bad_input for bytes that are no such events, and
  /// beyond the limits.
  std::string push(std::string_view bytes);

  const std::string& text() const { return text_; }
  /// Events that brought text, of the reply or of what the model thought before it.
  uint32_t pieces() const { return pieces_; }
  /// Tokens of the reply as the server counted them, and of the prompt; nothing where it did not tell.
  std::optional<uint32_t> tokens() const { return tokens_; }
  std::optional<uint32_t> prompt_tokens() const { return prompt_tokens_; }
  /// Why the server ended the reply: "stop", "length"; empty before that.
  const std::string& finish_reason() const { return finish_reason_; }
  /// Whether the server said that no more comes.
  bool done() const { return done_; }

 private:
  void take_line(std::string_view line, std::string& added);
  void take_event(std::string_view data, std::string& added);

  size_t bytes_ = 0;
  std::string line_;  // that is not whole yet
  std::string text_;
  uint32_t pieces_ = 0;
  std::optional<uint32_t> tokens_, prompt_tokens_;
  std::string finish_reason_;
  bool done_ = false;
};

}  // namespace canopy
