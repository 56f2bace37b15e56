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
  own,       // the target's own token at the end of a round of drafting
};

/// The bytes of a reply's text that one token wrote. A token that completed no character has none (begin == end).
struct TokenSpan {
  uint32_t begin = 0, end = 0;
  uint32_t round = 0;  // of the reply, from 0
  uint32_t node = 0;   // of the round's tree; the number behind its last node for the target's own token
  TokenSource source = TokenSource::ar;
  bool operator==(const TokenSpan&) const = default;
};

/// What a reply was asked for with: enough to ask for it again.
struct ReplyParameters {
  SamplingSettings sampling;  // with the seed of this reply
  uint32_t max_tokens = 0;
  std::optional<DecodeMode> mode;
  uint32_t budget = 0;
  std::string system_prompt;
  std::string model, device;  // as people call them; never a path
};

struct Message {
  uint64_t id = 0;  // unique in this process; of a reply also Generate::reply_id
  Role role = Role::user;
  std::string text;        // UTF-8
  int64_t created_ms = 0;  // since 1970, UTC
  // Of an assistant's message:
  bool writing = false;
  uint32_t tokens = 0;
  double tokens_per_second = 0;
  std::optional<uint64_t> seed;  // of its random numbers; none when it was greedy
  std::optional<ReplyFinished> result;
  ReplyParameters parameters;
  uint32_t rounds = 0;
  std::vector<TokenSpan> spans;  // ascending and without gaps; empty where nobody asked for rounds

  /// An answer that ended before its first word: shown as nothing, and never sent to the model.
  bool failed_unsaid() const { return role == Role::assistant && !writing && text.empty(); }
};

/// Adds the tokens of a round to a message's spans. `round`: of the reply, from 0. The first token of the round begins
/// at text_begin, token i ends at text_ends[i] (RoundFinished). What lies before the first round is the first token's,
/// which came out of the prompt's pass.
void append_spans(Message& message, const RoundRecord& record, uint32_t round, uint32_t text_begin,
                  std::span<const uint32_t> text_ends);

}  // namespace canopy::app
