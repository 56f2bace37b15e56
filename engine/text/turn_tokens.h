#pragma once
// The tokens that a reply was written with, kept so that a later prompt holds the same ones. A text can be spelled by
// many token sequences and a model need not write the one that tokenizing gives; the K/V cache holds what it wrote.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace canopy {

class Tokenizer;

struct TurnTokens {
  std::vector<uint32_t> ids;     // of the content; empty: not known
  std::vector<uint32_t> ending;  // tokens of the reply behind its content: the token that ended it, or a stop string
  uint64_t vocabulary = 0;       // Tokenizer::identity() of the tokenizer that the ids belong to

  bool operator==(const TurnTokens&) const = default;
};

/// The tokens of a finished reply of that text. `ids`: all it wrote. Empty where the text does not end where a token
/// does, which happens at stop strings, or where the reply holds a control token before its end. `in_channels`: the
/// text is not what the tokens spell (reply_channels.h); all but the one that ended the reply are its own then.
TurnTokens tokens_of_reply(const Tokenizer& tokenizer, std::span<const uint32_t> ids, std::string_view text,
                           bool in_channels = false);

/// Those of the tokens that wrote the last message, where a reply is in channels: what stands behind its last control
/// token. Of other replies all.
TurnTokens tokens_of_answer(const Tokenizer& tokenizer, const TurnTokens& tokens);

/// Whether a prompt may hold these ids where its template wrote `text`: they are known, belong to this tokenizer,
/// decode to exactly that text and hold no control token, which only a template may write.
bool spells(const Tokenizer& tokenizer, const TurnTokens& tokens, std::string_view text);

}  // namespace canopy
