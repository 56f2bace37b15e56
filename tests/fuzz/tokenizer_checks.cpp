#include "tests/fuzz/tokenizer_checks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/text/unicode.h"
#include "tests/fuzz/harness.h"

namespace canopy::fuzz {
namespace {

constexpr uint32_t most_tokens_asked = 256;

bool is_valid(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

void check_ids(const Tokenizer& tokenizer, std::span<const uint32_t> ids) {
  for (const uint32_t id : ids) require(id < tokenizer.vocab_size(), "an id is one of the vocabulary");
  std::string bytes;
  Utf8Stream stream;
  std::string streamed;
  for (const uint32_t id : ids) {
    bytes += tokenizer.token_bytes(id);
    streamed += stream.push(tokenizer.token_bytes(id));
    require(stream.pending() <= 3, "less than a character is held back");
  }
  streamed += stream.finish();
  require(streamed == to_valid_utf8(bytes), "text that is streamed is the text");
  const std::string decoded = tokenizer.decode(ids, false);
  require(is_valid(decoded), "decoded text is valid UTF-8");
  require(tokenizer.drops_leading_space() || decoded == streamed, "decoded text is that of the tokens");
  require(is_valid(tokenizer.decode(ids)), "decoded text without control tokens is valid UTF-8");
}

void append_controls(const Tokenizer& tokenizer, std::span<const uint32_t> ids, std::vector<uint32_t>& controls) {
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(controls),
               [&](uint32_t id) { return tokenizer.is_special(id); });
}

}  // namespace

void check_vocabulary(const Tokenizer& tokenizer) {
  const uint32_t count = tokenizer.vocab_size();
  require(count > 0, "a vocabulary has tokens");
  for (uint32_t id = 0; id < std::min(count, most_tokens_asked); ++id) {
    touch(tokenizer.token_bytes(id));
    const std::string piece = tokenizer.piece(id);
    require(printable(piece) == piece, "a token shown alone is safe to show");
  }
  require(tokenizer.token_bytes(count).empty() && !tokenizer.is_special(count), "there is no token past the last");
  require(!tokenizer.bos() || *tokenizer.bos() < count, "bos is a token");
  require(!tokenizer.eos() || *tokenizer.eos() < count, "eos is a token");
  require(!tokenizer.adds_bos() || tokenizer.bos(), "bos is put in front where there is one");
  const auto ends = tokenizer.end_ids();
  require(std::is_sorted(ends.begin(), ends.end()), "tokens that end a reply are sorted");
  for (const uint32_t id : ends) require(id < count, "what ends a reply is a token");
}

void check_text(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, SpecialTokens::as_text);
  check_ids(tokenizer, ids);
  require(tokenizer.encode(text, SpecialTokens::as_text) == ids, "the same text has the same ids, cached or not");
  check_ids(tokenizer, tokenizer.encode(text, SpecialTokens::parse));
}

void check_special_tokens(const Tokenizer& tokenizer, std::span<const TextSpan> spans) {
  std::vector<uint32_t> found;
  append_controls(tokenizer, tokenizer.encode(spans), found);
  std::vector<uint32_t> expected;
  for (const TextSpan& span : spans) {
    if (span.special == SpecialTokens::parse)
      append_controls(tokenizer, tokenizer.encode(span.text, span.special), expected);
  }
  require(found == expected, "no text forges a control token");
}

}  // namespace canopy::fuzz
