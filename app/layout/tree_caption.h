#pragma once
// A round in one sentence, for the line above the tree in Watch. Without ImGui.

#include <array>
#include <string>
#include <vector>

#include "app/layout/tree_model.h"

namespace canopy::app {

struct CaptionPart {
  enum class Kind { plain, accepted, token, aside };
  Kind kind = Kind::plain;
  std::string text;
  bool operator==(const CaptionPart&) const = default;
};

/// "Four guesses were right, and the big model added Cannot itself: five tokens from one pass." The parts of one
/// sentence are joined without anything between them. labels: [nodes] words of the tree.
/// The aside at the end, "15 guesses would have brought the same.", is there where less than half of the guesses, in
/// the order in which they were added, hold all that were right.
std::vector<CaptionPart> tree_caption(const TreeModel& tree, const std::vector<std::string>& labels, size_t emitted);
/// For narrow places: "Four guesses were right: five tokens from one pass."
std::vector<CaptionPart> brief_caption(const TreeModel& tree, size_t emitted);
/// For the narrowest: "Five tokens from one pass."
std::vector<CaptionPart> briefest_caption(size_t emitted);

/// The note at the drafter's favourite where the accepted path leaves it, in three lines: what a single chain would
/// have brought in place of the tokens that the round emitted.
std::array<std::string, 3> chain_note_lines(const ChainEstimate& chain, size_t emitted);

/// "four", "twelve", "13": a number in a sentence.
std::string spelled(size_t number);
/// "so far", "next token", "2nd", "11th": the words above a column.
std::string depth_words(uint32_t depth);
/// The first letter as a capital.
std::string capitalised(std::string words);

}  // namespace canopy::app
