#pragma once
// The turns of a conversation and the tokens of a reply, the channels that a reply may be in, and strings that end it.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

class Tokenizer;

// The tokens that a reply was written with, kept so that a later prompt holds the same ones. A text can be spelled by
// many token sequences and a model need not write the one that tokenizing gives; the K/V cache holds what it wrote.

struct TurnTokens {
  std::vector<uint32_t> ids;     // of the content; empty: not known
  std::vector<uint32_t> ending;  // tokens of the reply behind its content: the token that ended it, or a stop string
  uint64_t vocabulary = 0;       // Tokenizer::identity() of the tokenizer that the ids belong to

  bool operator==(const TurnTokens&) const = default;
};

/// The tokens of a finished reply of that text. `ids`: all it wrote. Empty where the text does not end where a token
/// does, which happens at stop strings, or where the reply holds a control token before its end. `in_channels`: the
/// text is not what the tokens spell (ReplyChannels); all but the one that ended the reply are its own then.
TurnTokens tokens_of_reply(const Tokenizer& tokenizer, std::span<const uint32_t> ids, std::string_view text,
                           bool in_channels = false);

/// Those of the tokens that wrote the last message, where a reply is in channels: what stands behind its last control
/// token. Of other replies all.
TurnTokens tokens_of_answer(const Tokenizer& tokenizer, const TurnTokens& tokens);

/// Whether a prompt may hold these ids where its template wrote `text`: they are known, belong to this tokenizer,
/// decode to exactly that text and hold no control token, which only a template may write.
bool spells(const Tokenizer& tokenizer, const TurnTokens& tokens, std::string_view text);

/// One turn of a conversation. role is "system", "user" or "assistant", and in conversations of other programs "tool",
/// "function" or "developer"; content is UTF-8. The tokens that a model wrote the content with may be there too: a
/// prompt then holds these where it can (ChatTemplate::render_to_ids).
struct ChatTurn {
  std::string role;
  std::string content;
  TurnTokens tokens = {};
  std::string thinking = {};  // of a reply in channels: what its content is told apart from, for templates that ask
  std::vector<std::string> parts = {};  // of a content that came in several, for templates that take them one by one
  std::string fields = {};  // what else a template may read of the turn, as a JSON object: {"tool_calls": [...]}
};

// Replies in channels, as OpenAI's harmony format (gpt-oss) has them: a reply is several messages,
//   <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>
// of which "final" is the answer. All others are told apart from it as thinking: "analysis", and "commentary", where
// calls of tools are (to=functions.NAME, ended by <|call|>). Markup is what control tokens wrote and what stands in the
// head of a message, between <|start|> or <|channel|> and <|message|>; the same letters in a text are text.
//
// Gemma 4 thinks in a channel, too, whose head is a line: <|channel>thought\n … <channel|>, then the answer. Its calls
// are part of the answer, as they are spelled: <|tool_call>call:NAME{…}<tool_call|>, with <|"|> around texts.

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
  /// Whether a vocabulary has the control tokens of one of the formats.
  static bool known_to(const Tokenizer& tokenizer);
  /// Whether calls of tools are messages of their own: in harmony's format, not in Gemma's.
  static bool has_calls(const Tokenizer& tokenizer);

  /// A token as it is spelled.
  struct Piece {
    std::string_view bytes;
    bool control = false;
  };
  using PieceOf = std::function<Piece(uint32_t id)>;

  /// Reads what comes before the reply: a prompt may end in the head of the reply's first message, or inside it. False
  /// where the prompt holds no message of one of the formats.
  bool begin(std::span<const uint32_t> prompt, const PieceOf& piece);

  /// What is shown of a part of a reply.
  struct Shown {
    std::string lead;  // of no token: a blank line between messages, the name of a tool
    std::string text;
  };

  /// A control token by its spelling. `shown` gets an answer that had no head, and the marks of Gemma's calls.
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
  bool head_is_line_ = false;   // Gemma's: it ends at a line break
  std::string role_, channel_;  // parts of the head: "assistant to=functions.f", "commentary json"
  Kind kind_ = Kind::answer;
  bool starts_ = true;  // no text of the message has come
  bool answering_ = false;
  uint32_t shown_bytes_ = 0, thought_bytes_ = 0;
  std::vector<ToolCall> calls_;
};

/// Ends a reply at a stop string and holds back text that may turn out to begin one.
class StopStrings {
 public:
  /// Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  /// Takes text and returns what can be shown by now. After a stop string was met, nothing more comes out.
  std::string push(std::string_view text);

  /// Ends the text: returns what was held back and proved to be ordinary.
  std::string finish();

  /// True once a stop string was met; it and all that follows is left out.
  bool stopped() const { return stopped_; }
  /// The stop string that was met; empty before.
  const std::string& met() const { return met_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string met_;
  bool stopped_ = false;
};

}  // namespace canopy
