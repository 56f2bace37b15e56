#pragma once
// The symbols that merging starts from: the bytes of a piece, or its characters.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/text/token_index.h"

namespace canopy {

class BaseSymbols {
 public:
  /// The substitute for a character that has no token.
  struct Fallback {
    std::array<std::optional<uint32_t>, 256> byte_tokens;  // used when every byte of the character has one
    std::optional<uint32_t> unknown;                       // otherwise; absent: nothing does, it is dropped
    bool fuses_unknown = false;                            // several in a row become one
    bool holds_place = false;  // place_holder stands for unknown ones, several in a row being one, while symbols merge
  };

  /// No token: merges with nothing, so that what stands around a character without a token stays apart.
  static constexpr uint32_t place_holder = 0xFFFF'FFFE;

  /// Each byte by the token that GPT-2's alphabet writes it as. A byte without one is unknown.
  static BaseSymbols of_bytes(const TokenIndex& tokens, std::optional<uint32_t> unknown);

  /// Each character by its token. The index must outlive this.
  static BaseSymbols of_characters(const TokenIndex& tokens, const Fallback& fallback);

  /// Appends the symbols of a piece, valid UTF-8 or not: bytes that are no character count as one each.
  void append(std::string_view piece, std::vector<uint32_t>& symbols) const;

  /// Puts the unknown token where a place was held for it, or nothing where there is none. To be called when the
  /// symbols have merged.
  void release_places(std::vector<uint32_t>& symbols) const;

  /// Whether some character has neither a token nor anything that takes its place.
  bool drops_characters() const;

 private:
  void append_fallback(std::string_view character, std::vector<uint32_t>& symbols) const;

  const TokenIndex* characters_ = nullptr;               // null: symbols are bytes
  std::array<std::optional<uint32_t>, 256> single_ids_;  // by byte; of characters, the ASCII ones
  Fallback fallback_;
};

}  // namespace canopy
