#pragma once
// Replies in channels, as OpenAI's harmony format (gpt-oss) has them: a reply is several messages,
//   <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>
// of which "final" is the answer. All others are told apart from it as thinking: "analysis", and "commentary", where
// calls of tools are (to=functions.NAME, ended by <|call|>). Markup is what control tokens wrote and what stands in the
// head of a message, between <|start|> or <|channel|> and <|message|>; the same letters in a text are text.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

class Tokenizer;

/// What of a reply's text was thought in channels of its own, in front of the answer.
struct ThoughtPart {
  bool told_apart = false;  // the reply is in channels; else thinking is marked in the text itself, if at all
  bool open = false;        // the answer has not begun
  uint32_t bytes = 0;       // of the text, the blank line in front of the answer included
  bool operator==(const ThoughtPart&) const = default;
};

struct ToolCall {
  std::string name;       // without "functions."
  std::string arguments;  // as the model wrote them, usually JSON
};

class ReplyChannels {
 public:
  /// Whether a vocabulary has the control tokens of the format.
  static bool known_to(const Tokenizer& tokenizer);

  /// A token as it is spelled.
  struct Piece {
    std::string_view bytes;
    bool control = false;
  };
  using PieceOf = std::function<Piece(uint32_t id)>;

  /// Reads what comes before the reply: a prompt may end in the head of the reply's first message, or inside it. False
  /// where the prompt holds no message of the format.
  bool begin(std::span<const uint32_t> prompt, const PieceOf& piece);

  /// What is shown of a part of a reply.
  struct Shown {
    std::string lead;  // of no token: a blank line between messages, the name of a tool
    std::string text;
  };

  /// A control token by its spelling. `shown` gets an answer that had no head.
  /// True where the text of a message ends here: what follows is no part of it.
  bool control(std::string_view spelling, Shown& shown);

  /// Text of the reply, any part of it; nothing of a head is shown.
  Shown text(std::string_view characters);

  ThoughtPart thought() const { return {true, !answering_, answering_ ? thought_bytes_ : shown_bytes_}; }

  const std::vector<ToolCall>& calls() const { return calls_; }

 private:
  enum class Kind { answer, thought, call };

  void open_message();
  Shown add(std::string_view characters);

  bool in_head_ = false;
  bool has_channel_ = false;
  std::string role_, channel_;  // parts of the head: "assistant to=functions.f", "commentary json"
  Kind kind_ = Kind::answer;
  bool starts_ = true;  // no text of the message has come
  bool answering_ = false;
  uint32_t shown_bytes_ = 0, thought_bytes_ = 0;
  std::vector<ToolCall> calls_;
};

}  // namespace canopy
