#pragma once
// What the spelling of a token says of it, whatever a file says: converters often type the tokens that end a reply as
// text, or name only one of them. The names are those that llama.cpp knows.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace canopy {

struct NamedTokens {
  std::vector<uint32_t> ends;       // end a reply; ascending
  std::vector<uint32_t> file_ends;  // of these the ones that end a file which is filled in; chats have none; ascending
  std::vector<uint32_t> controls;   // are control tokens, those of `ends` included; ascending
  /// "<|end|>" where the vocabulary has other tokens that end a reply (harmony's "<|return|>" and "<|call|>"): it ends
  /// one message of several in a reply, even where a file names it among the ends.
  std::vector<uint32_t> message_ends;
};

/// `types` are the numbers of TokenType by id; a token without one is a normal one.
NamedTokens named_tokens(std::span<const std::string_view> tokens, std::span<const int32_t> types);

}  // namespace canopy
