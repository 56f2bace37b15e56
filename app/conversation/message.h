#pragma once
// One message of a conversation, and where the tokens of a reply came from.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/client/engine_client.h"
#include "engine/speculation/sampling_settings.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

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

/// Takes away the text and the tokens behind `size` bytes of text.
void cut_text(Message& message, size_t size);

/// Adds the tokens of a round to a message's spans. `round` is its number in the message, from 0. The first token of
/// the round begins at byte text_begin, token i ends at text_ends[i] (RoundFinished). What text the message has before
/// the first round, or before that of a continuation, belongs to the token that came out of the prompt's pass.
void append_spans(Message& message, const RoundRecord& record, uint32_t round, uint32_t text_begin,
                  std::span<const uint32_t> text_ends);

}  // namespace canopy::app
