#include "app/tree/token_facts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/layout/token_label.h"

namespace canopy::app {
namespace {

using Kind = FactWords::Kind;

const char* state_words(NodeFate fate) {
  switch (fate) {
    case NodeFate::root: return "Root, the last token before";
    case NodeFate::accepted: return "Accepted";
    case NodeFate::rejected: return "Rejected at the frontier";
    case NodeFate::not_reached: return "Not reached";
    case NodeFate::bonus: return "Bonus, the target\u2019s own";
  }
  return "";
}

std::string log_text(double log) {
  if (!std::isfinite(log)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", log);
  return text;
}

/// Writes the sentence that explains the state of a node.
class Explanation {
 public:
  Explanation(const TreeModel& tree, const TokenPieces& pieces) : tree_(tree), pieces_(pieces) {}

  std::vector<FactWords> of(uint32_t node) {
    switch (tree_.nodes[node].fate) {
      case NodeFate::root: root(); break;
      case NodeFate::accepted: accepted(node); break;
      case NodeFate::rejected: rejected(node); break;
      case NodeFate::not_reached: not_reached(node); break;
      case NodeFate::bonus: bonus(node); break;
    }
    return std::move(words_);
  }

 private:
  void say(const std::string& text) { words_.push_back({Kind::plain, text}); }
  void figure(uint32_t value) { words_.push_back({Kind::figure, std::to_string(value)}); }
  void token(uint32_t node) {
    const std::optional<uint32_t> id = tree_.nodes[node].token;
    words_.push_back({Kind::token, token_label(id ? pieces_(*id) : std::nullopt, id)});
  }

  void root() {
    if (tree_.size() == 2 && tree_.bonus) {
      say("Nothing was drafted: plain decoding takes one token from here.");
    } else {
      say("The text so far ends here; the drafted tokens are guesses at what follows.");
    }
  }

  void accepted(uint32_t node) {
    const uint32_t rank = tree_.nodes[node].rank;
    if (rank == 0) {
      say("The drafter held it likeliest here, and the target chose it too.");
      return;
    }
    say("The target chose it; the drafter held it at rank ");
    figure(rank);
    say(". A chain, which drafts rank 0 only, would have stopped here.");
  }

  void rejected(uint32_t node) {
    const uint32_t parent = tree_.nodes[node].parent, taken = tree_.next_on_path(parent);
    if (taken == TreeNode::none) {
      say("The target went on differently.");
      return;
    }
    say("The target chose ");
    token(taken);
    if (tree_.nodes[taken].fate == NodeFate::bonus) {
      say(", which was not drafted here.");
    } else {
      say(", held here at rank ");
      figure(tree_.nodes[taken].rank);
      say(".");
    }
    if (tree_.nodes[node].rank != 0) return;
    say(" A chain would have ended after ");
    figure(chain_accepted(parent));
    say(" accepted.");
  }

  /// How many nodes on the path to this node have rank 0 from the root on: a chain would have drafted just these.
  uint32_t chain_accepted(uint32_t node) const {
    uint32_t accepted = tree_.nodes[node].depth;
    for (; node != 0; node = tree_.nodes[node].parent)
      if (tree_.nodes[node].rank != 0) accepted = tree_.nodes[node].depth - 1;
    return accepted;
  }

  void not_reached(uint32_t node) {
    uint32_t first = node;
    while (tree_.nodes[tree_.nodes[first].parent].fate == NodeFate::not_reached) first = tree_.nodes[first].parent;
    const uint32_t above = tree_.nodes[first].parent;
    if (tree_.nodes[above].fate != NodeFate::rejected) {
      say("The reply ended before it; whether it was right is not known.");
      return;
    }
    say("Verified with the others, but it stands below ");
    token(above);
    say(", which the target did not choose.");
  }

  void bonus(uint32_t node) {
    const uint32_t parent = tree_.nodes[node].parent;
    const size_t others = tree_.children(parent).size() - 1;
    if (others == 0) {
      say(parent == 0 ? "Nothing was drafted here. " : "Nothing was drafted behind this path. ");
    } else if (others == 1) {
      say("Not drafted here: the only guess was another. ");
    } else {
      say("Not among the ");
      figure(static_cast<uint32_t>(others));
      say(" drafted here. ");
    }
    say("It comes free with the pass.");
  }

  const TreeModel& tree_;
  const TokenPieces& pieces_;
  std::vector<FactWords> words_;
};

/// Why a drafted token's card lacks the target's part; empty where it is all there.
std::string missing_words(const RoundRecord& record, const RoundNode& row) {
  const auto has_p = [](const RoundNode& node) { return std::isfinite(node.log_p); };
  std::string words;
  if (!has_p(row)) {
    words = std::ranges::any_of(record.nodes, has_p)
                ? "In a sampled reply the target\u2019s probabilities are worked out for the first guesses only."
                : "The target\u2019s probabilities were not recorded for this pass.";
  }
  if (row.target_token == RoundNode::unknown) {
    if (!words.empty()) words += " ";
    words += "What the target would have written after it was not drawn, as the text did not come here.";
  }
  return words;
}

}  // namespace

std::string TokenFacts::sentence_text() const {
  std::string text;
  for (const FactWords& words : sentence) text += words.text;
  return text;
}

std::string probability_text(double probability) {
  if (!std::isfinite(probability)) return "";
  if (probability > 0 && probability < 0.0005) return "<0.001";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", probability);
  return text;
}

TokenFacts token_facts(const RoundRecord& record, const TreeModel& tree, uint32_t node, const TokenPieces& pieces) {
  const TreeNodeView& view = tree.nodes[node];
  TokenFacts facts;
  facts.fate = view.fate;
  facts.state = state_words(view.fate);
  const std::optional<trace::Piece> piece = view.token ? pieces(*view.token) : std::nullopt;
  facts.label = token_label(piece, view.token);
  if (view.token) facts.id = std::to_string(*view.token);
  if (piece) facts.bytes = token_bytes(piece->bytes);
  facts.depth = std::to_string(view.depth);
  facts.position = std::to_string(record.context + view.depth);
  facts.sentence = Explanation(tree, pieces).of(node);
  if (view.fate == NodeFate::bonus || node >= record.nodes.size()) return facts;
  const RoundNode& row = record.nodes[node];
  facts.row = std::to_string(node + 1) + " of " + std::to_string(record.width);
  if (node > 0) {
    facts.rank = std::to_string(view.rank);
    facts.q = probability_text(std::exp(row.node.log_q));
    facts.log_q = log_text(row.node.log_q);
    facts.path = probability_text(std::exp(row.node.score));
    facts.p = probability_text(std::exp(double{row.log_p}));
    facts.log_p = log_text(double{row.log_p});
    facts.note = missing_words(record, row);
  }
  if (row.target_token != RoundNode::unknown) {
    facts.choice = token_label(pieces(row.target_token), row.target_token);
    facts.choice_id = std::to_string(row.target_token);
  }
  return facts;
}

}  // namespace canopy::app
