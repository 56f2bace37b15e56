#pragma once
// Whether the columns of a comparison wrote the same text, and where they first differ.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/comparison/sweep.h"

namespace canopy {

/// A reply's text and its tokens, as far as they are known.
struct WrittenText {
  std::string text;
  std::vector<uint32_t> ids;   // empty of a server
  std::vector<uint32_t> ends;  // by token, of a server by piece: bytes of the text that those so far completed
  uint64_t vocabulary = 0;     // Tokenizer::identity(); 0 of a server
};

/// The first token of `written` at which it differs from `reference`; nothing where they are the same. Token ids are
/// compared where both are of one vocabulary, else texts: then the token is the one that has the first differing byte,
/// by `written`'s own tokens, else by those of `reference`. Of two servers it is the piece, which mostly is a token.
std::optional<uint32_t> difference_of(const WrittenText& written, const WrittenText& reference);

/// The texts of a comparison's first repeat, each compared as soon as that is possible.
class ComparisonTexts {
 public:
  explicit ComparisonTexts(uint32_t baseline) : baseline_(baseline) {}

  /// Takes a run's text. Returns what became known by it: runs, this one or earlier ones, and where each differs.
  std::vector<std::pair<RunKey, std::optional<uint32_t>>> add(const RunKey& key, WrittenText text);

 private:
  uint32_t baseline_;
  std::map<uint32_t, WrittenText> references_;                               // by prompt
  std::map<uint32_t, std::vector<std::pair<RunKey, WrittenText>>> waiting_;  // for their prompt's reference
};

}  // namespace canopy
