#pragma once
// The merges of a vocabulary: those that its file lists, or those that follow from its scores.

#include "engine/text/merge_table.h"
#include "engine/text/token_index.h"
#include "engine/text/vocabulary.h"

namespace canopy {

struct VocabularyMerges {
  MergeTable table;
  bool joins_words = false;  // some merge has a word mark inside that does not follow another one
};

/// The ranks are the places in data.merges. Throws Error(bad_input) when a merge is no two tokens with a space between
/// them, or names a token that is not in the index.
VocabularyMerges listed_merges(const VocabularyData& data, const TokenIndex& tokens);

/// SentencePiece's rule: neighbours merge when together they are a token, the one with the highest score first. The
/// index holds the tokens that may merge. Throws Error(bad_input) when scores are missing or no numbers, or when a
/// token is absurdly long.
VocabularyMerges scored_merges(const VocabularyData& data, const TokenIndex& tokens);

}  // namespace canopy
