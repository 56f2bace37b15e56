#include "engine/text/base_symbols.h"

#include <algorithm>

#include "engine/text/byte_alphabet.h"
#include "engine/text/utf8.h"

namespace canopy {

BaseSymbols BaseSymbols::of_bytes(const TokenIndex& tokens, std::optional<uint32_t> unknown) {
  BaseSymbols symbols;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto id = tokens.find(byte_level_character(static_cast<unsigned char>(byte)));
    symbols.single_ids_[byte] = id ? id : unknown;
  }
  return symbols;
}

BaseSymbols BaseSymbols::of_characters(const TokenIndex& tokens, const Fallback& fallback) {
  BaseSymbols symbols;
  symbols.characters_ = &tokens;
  symbols.fallback_ = fallback;
  for (uint32_t byte = 0; byte < 0x80; ++byte) {
    const char character = static_cast<char>(byte);
    symbols.single_ids_[byte] = tokens.find({&character, 1});
  }
  return symbols;
}

void BaseSymbols::append(std::string_view piece, std::vector<uint32_t>& symbols) const {
  if (characters_ == nullptr) {
    for (const char c : piece) {
      const auto& id = single_ids_[static_cast<unsigned char>(c)];
      if (id) symbols.push_back(*id);
    }
    return;
  }
  for (size_t at = 0, length = 0; at < piece.size(); at += length) {
    const auto byte = static_cast<unsigned char>(piece[at]);
    length = byte < 0x80 ? 1 : next_utf8(piece.substr(at)).length;
    const std::string_view character = piece.substr(at, length);
    const auto id = byte < 0x80 ? single_ids_[byte] : characters_->find(character);
    if (id) {
      symbols.push_back(*id);
    } else {
      append_fallback(character, symbols);
    }
  }
}

void BaseSymbols::append_fallback(std::string_view character, std::vector<uint32_t>& symbols) const {
  const auto token_of = [&](char c) { return fallback_.byte_tokens[static_cast<unsigned char>(c)]; };
  if (std::all_of(character.begin(), character.end(), [&](char c) { return token_of(c).has_value(); })) {
    for (const char c : character) symbols.push_back(*token_of(c));
    return;
  }
  if (fallback_.holds_place) {
    if (symbols.empty() || symbols.back() != place_holder) symbols.push_back(place_holder);
    return;
  }
  if (!fallback_.unknown) return;
  const bool follows_one = !symbols.empty() && symbols.back() == *fallback_.unknown;
  if (!fallback_.fuses_unknown || !follows_one) symbols.push_back(*fallback_.unknown);
}

void BaseSymbols::release_places(std::vector<uint32_t>& symbols) const {
  if (!fallback_.holds_place) return;
  if (fallback_.unknown) {
    std::replace(symbols.begin(), symbols.end(), place_holder, *fallback_.unknown);
  } else {
    std::erase(symbols, place_holder);
  }
}

bool BaseSymbols::drops_characters() const {
  const auto has_token = [](const std::optional<uint32_t>& id) { return id.has_value(); };
  return !fallback_.unknown && !std::all_of(fallback_.byte_tokens.begin(), fallback_.byte_tokens.end(), has_token);
}

}  // namespace canopy
