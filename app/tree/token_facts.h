#pragma once
// Everything known of one node of a round as text: the contents of its card in the tree and in the chat.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/layout/tree_model.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {

/// Looks up the text of a token; nullopt where it is not known.
using TokenPieces = std::function<std::optional<trace::Piece>(uint32_t token)>;

struct FactWords {
  enum class Kind { plain, token, figure };
  Kind kind = Kind::plain;
  std::string text;
  bool operator==(const FactWords&) const = default;
};

/// The facts as they are shown; empty where the record does not have them.
struct TokenFacts {
  NodeFate fate = NodeFate::root;
  std::string label;        // "or"
  std::string state;        // "Rejected at the frontier"
  std::string id;           // "476"
  std::string depth, rank;  // "3", "0"
  std::string position;     // in the context, from 0: "504"
  std::string row;          // of the pass: "12 of 64"
  std::string bytes;        // "20 6F 72"
  std::string p, log_p;     // the target's: "0.031", "-3.474"
  std::string q, log_q;     // the drafter's
  std::string path;         // "0.371"
  std::string choice;       // the target's own next token after this one: "and"
  std::string choice_id;    // "290"
  std::string note;         // why p or choice of a drafted token is not known, as sentences
  std::vector<FactWords> sentence;

  std::string sentence_text() const;
};

/// node: an index in `tree`, which must be the model of the record.
TokenFacts token_facts(const RoundRecord& record, const TreeModel& tree, uint32_t node, const TokenPieces& pieces);

/// Three decimals; "<0.001" for what would be rounded to 0.
std::string probability_text(double probability);

}  // namespace canopy::app
