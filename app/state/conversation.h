#pragma once
// A conversation as a tree of messages, where the tokens of a reply came from, what of it is thinking, and the text
// files that go with a question.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session/engine_client.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/sampler.h"

namespace canopy::app {

// One message of a conversation, and where the tokens of a reply came from.

enum class Role { user, assistant };

/// Who wrote a token of a reply.
enum class TokenSource : uint8_t {
  ar,        // the target alone, in an AR round
  accepted,  // drafted, and the target agreed
  own,       // the target's own token at the end of a round that had a draft
};

/// The bytes of a reply's text that one token added. A token that completed no character has none (begin == end).
struct TokenSpan {
  uint32_t begin = 0, end = 0;
  uint32_t round = 0;  // number of the round in the reply, from 0
  uint32_t node = 0;   // node of the round's tree; for the target's own token the number after the last node
  TokenSource source = TokenSource::ar;
  bool operator==(const TokenSpan&) const = default;
};

/// A text file that is sent with a question.
struct Attachment {
  std::string name;         // of the file, without its folder
  std::string text;         // UTF-8, as it was when the file was attached
  uint32_t tokens = 0;      // of `text` in `vocabulary`; 0: not counted yet
  uint64_t vocabulary = 0;  // Tokenizer::identity()
  uint64_t id = 0;          // of the count that was asked for; 0: none yet. Not kept
};

/// The parameters that a reply was requested with: enough to request it again.
struct ReplyParameters {
  SamplingSettings sampling;  // with the seed of this reply
  uint32_t max_tokens = 0;
  std::optional<DecodeMode> mode;
  std::optional<bool> mode_chosen = {};  // the user chose it, or the size of its trees; none: not known
  uint32_t budget = 0;
  std::string system_prompt;
  std::optional<bool> thinking = {};  // asked for or refused; none: what the model's template does by itself
  uint32_t left_out = 0;              // messages at the beginning of the chat that the prompt was written without
  std::string model, device;          // names for the user; never a path
};

/// Where a reply was gone on with, after a limit or a stop: from there on the engine wrote it as a reply of its own.
struct Continuation {
  uint64_t reply_id = 0;     // Generate::reply_id of that part; unique in this process like the ids of messages
  uint32_t first_round = 0;  // number in the message of the part's first round
  uint32_t text_begin = 0;   // bytes of the message's text that stood before
  bool operator==(const Continuation&) const = default;
};

struct Message {
  uint64_t id = 0;  // unique in this process; of a reply also Generate::reply_id
  Role role = Role::user;
  std::string text;                     // UTF-8
  int64_t created_ms = 0;               // since 1970, UTC
  std::vector<Attachment> attachments;  // of the user: sent in front of `text`
  // Only for messages of the assistant:
  bool begins_thinking = false;  // the prompt opened the thinking, so that the text begins inside it
  ThoughtPart thought = {};      // of the text, where the reply came in channels: it has no tags then
  bool writing = false;
  uint32_t tokens = 0;
  double tokens_per_second = 0;
  std::optional<uint64_t> seed;  // of the sampler; none for greedy decoding
  std::optional<ReplyFinished> result;
  ReplyParameters parameters;
  uint32_t rounds = 0;
  std::vector<TokenSpan> spans;         // ascending and without gaps; empty where the rounds were not requested
  std::vector<Continuation> continued;  // ascending
  std::optional<ReplyFinished> before;  // how it had ended, while it is being gone on with
  // While it is being written: its tokens so far, all in `ids`, as far as they are known without a gap. Once it has
  // ended they are in `result`.
  TurnTokens so_far;

  /// An answer that failed before its first word. It is not shown and never sent to the model.
  bool failed_unsaid() const { return role == Role::assistant && !writing && text.empty(); }
};

/// The part of a message that holds a round.
struct ReplyPart {
  uint64_t reply_id = 0;     // of the engine's reply: of the first part the message's id
  uint32_t first_round = 0;  // number in the message of its first round
};

ReplyPart part_of_round(const Message& message, uint32_t round);
/// All parts, in their order: at least one.
std::vector<ReplyPart> parts_of(const Message& message);

/// Lets a reply that is gone on with begin with the tokens that it had, those behind its content included.
void begin_tokens(Message& message, const TurnTokens& had);
/// Moves the tokens so far into the result, which must be there, of a reply that ended without the engine saying so.
void end_tokens(Message& message);

/// Takes away the text and the tokens behind `size` bytes of text.
void cut_text(Message& message, size_t size);

/// Adds the tokens of a round to a message's spans. `round` is its number in the message, from 0. The first token of
/// the round begins at byte text_begin, token i ends at text_ends[i] (RoundFinished). What text the message has before
/// the first round, or before that of a continuation, belongs to the token that came out of the prompt's pass.
void append_spans(Message& message, const RoundRecord& record, uint32_t round, uint32_t text_begin,
                  std::span<const uint32_t> text_ends);

// Where in a reply the model thinks: the text in <think> ... </think> in front of its answer, or what came in channels
// of its own (engine/text/chat_turn.h).

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

// Text files that go with a question.

inline constexpr size_t kLargestAttachment = 1024 * 1024;  // bytes
inline constexpr size_t kMostAttachments = 8;              // of a question

/// Whether a path is a file that begins like text, so that it may be meant to be attached.
bool looks_like_text(const std::string& path);

/// Reads a text file to attach, as UTF-8 (text_from_bytes()). Throws bad_input naming the file where it cannot be read,
/// is no regular file, is empty, larger than kLargestAttachment, or no text in a known encoding.
Attachment read_attachment(const std::string& path);

/// Names of files in a sentence, the first of them: "a.txt", "b.txt" and 3 more
std::string listed(const std::vector<std::string>& names);

/// An attachment as it is sent: its name, then its text in a code block that nothing inside can close.
std::string fenced(const Attachment& attachment);

/// What a question puts to the model: its files, then its text.
std::string question_with_files(const Message& question);

// A conversation as a tree: editing a question or answering it again adds a branch, and nothing is ever removed. One
// path from the first message to a leaf is shown; size(), [] and iteration go over that path.

class Conversation {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  struct Node {
    Message message;
    uint32_t parent = none;       // the node of the message before; none for a first message
    uint32_t shown_child = none;  // the child that was shown last; shown again when the user returns to this branch
  };

  /// Which version of a message is shown: `index` (from 0) of `count`. Answers that failed before their first word do
  /// not count.
  struct Place {
    size_t index = 0, count = 1;
  };

  // ---- the shown path ----
  size_t size() const { return path_.size(); }
  bool empty() const { return path_.empty(); }
  const Message& operator[](size_t i) const { return nodes_[path_[i]].message; }
  const Message& front() const { return (*this)[0]; }
  const Message& back() const { return (*this)[size() - 1]; }
  Message& back() { return nodes_[path_.back()].message; }

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Message;
    using difference_type = std::ptrdiff_t;
    using pointer = const Message*;
    using reference = const Message&;

    Iterator() = default;
    Iterator(const Conversation* owner, size_t at) : owner_(owner), at_(at) {}
    reference operator*() const { return (*owner_)[at_]; }
    pointer operator->() const { return &(*owner_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return {owner_, at_++}; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Conversation* owner_ = nullptr;
    size_t at_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  /// Position of a message on the shown path; size() where it is not on it.
  size_t find(uint64_t message_id) const;

  // ---- the tree ----
  const std::vector<Node>& nodes() const { return nodes_; }
  /// Node of the last message on the path; `none` for an empty conversation.
  uint32_t leaf() const { return path_.empty() ? none : path_.back(); }

  /// Adds a message after the last one of the path, and shows it.
  Message& append(Message message);
  /// Shows only the first `length` messages. The next append() begins a branch there.
  void cut(size_t length);
  Place place(size_t i) const;
  /// Shows another version of message i: the one `by` places further, clamped to those that exist. Below it, shows the
  /// path that was shown there last.
  void show_alternative(size_t i, int by);
  /// Shows the path from the first message to this node.
  void show_leaf(uint32_t node);
  /// A new conversation of the first `length` messages of the path, with the same title and system prompt.
  Conversation copy_of_path(size_t length) const;
  /// Removes everything.
  void clear() { *this = {}; }

  /// The title that was given, or else the first line of the first question.
  std::string shown_title() const;

  std::string id;             // names its file; empty until the chat is saved
  std::string title;          // empty: shown_title() makes one
  std::string system_prompt;  // empty: none
  int64_t created_ms = 0;
  uint32_t left_out = 0;  // messages at the beginning of the path that are not sent to the model any more
  bool pinned = false;    // stays on top of the list of chats

  /// Number of messages at the beginning of the shown path that are not sent: `left_out`, or fewer on a path so short
  /// that its last question would be among them. What is sent begins with a question.
  size_t unsent() const;

 private:
  std::vector<uint32_t> alternatives(size_t i) const;
  void extend_to_leaf();

  std::vector<Node> nodes_;     // parents before children
  std::vector<uint32_t> path_;  // numbers of nodes
};

/// The first line of a text that is not blank, short enough to be a title.
std::string first_line(std::string_view text);

/// Bytes [begin, end) of a message's text.
struct ChatHit {
  uint64_t message = 0;
  size_t begin = 0, end = 0;
  bool operator==(const ChatHit&) const = default;
};

/// All places in the shown path where `wanted` occurs, in order, at most `most`. Upper and lower case are the same
/// (FoldedText).
std::vector<ChatHit> find_in(const Conversation& conversation, std::string_view wanted, size_t most = 10'000);

}  // namespace canopy::app
