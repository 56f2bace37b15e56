#pragma once
// The tree of a round as it is shown: the fate of each node and the bonus, the labels of its tokens, and what the round
// was in one sentence.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/round_log.h"
#include "engine/speculation/round_record.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {

// The tree of a round as it is drawn: the fate of each node, the bonus as an additional node, and siblings in order.

/// What happened to a token.
enum class NodeFate : uint8_t { root, accepted, rejected, not_reached, bonus };
inline constexpr size_t kFates = 5;

struct TreeNodeView {
  uint32_t parent = TreeNode::none;
  uint32_t depth = 0;
  // Among the drafter's candidates of its depth, or where the text was asked too among its siblings, from 0; the bonus
  // comes after all drafted siblings.
  uint32_t rank = 0;
  std::optional<uint32_t> token;  // none for the root of an AR round if the text before it is not known
  NodeFate fate = NodeFate::not_reached;
  DraftSources sources = 0;  // that proposed it (proposed_by); none for root and bonus, which were not drafted
  double q = 1;              // the probability of the token by its sources; 1 for root and bonus
  double path = 1;           // by them, of the path to this node; for the bonus that of its parent
};

/// Whether the token stood behind the same words before.
inline bool is_found(const TreeNodeView& node) {
  return (node.sources & kFromSuffix) != 0;
}

/// Whether it was a word of another chat, which is not kept.
inline bool is_of_other_chat(const TreeNodeView& node) {
  return node.token == trace::other_chats_token;
}

struct TreeModel {
  std::vector<TreeNodeView> nodes;  // the nodes of the record in their order, parents first; then the bonus
  std::vector<uint32_t> path;       // the nodes that became text, from the root; the bonus last
  std::optional<uint32_t> bonus;    // index in nodes; none where the reply ended inside the tree
  std::array<uint32_t, kFates> count{};
  uint32_t depth = 0;        // of the deepest node
  DraftSources sources = 0;  // who guessed in the round (guessed_by)
  uint32_t match = 0;        // tokens of the text's end that were found in it before
  DraftSources steps = 0;    // of kFromSteps, what guessed one token behind another; 0: nothing did
  uint32_t found = 0;        // nodes that the text proposed, those of both included

  bool asked_text_alone() const { return sources == kFromSuffix; }
  bool has_found() const { return (sources & kFromSuffix) != 0; }
  /// The children of a node, by ascending rank.
  std::span<const uint32_t> children(uint32_t node) const {
    return std::span(child_).subspan(first_child_[node], first_child_[node + 1] - first_child_[node]);
  }
  uint32_t counted(NodeFate fate) const { return count[static_cast<size_t>(fate)]; }
  /// The child that became text, or TreeNode::none.
  uint32_t next_on_path(uint32_t node) const { return next_on_path_[node]; }
  bool on_path(uint32_t node) const;
  uint32_t size() const { return static_cast<uint32_t>(nodes.size()); }
  /// Nothing was guessed: behind the root there is the big model's token alone, which is no addition to anything then.
  bool is_plain() const { return size() == 2 && bonus.has_value(); }

 private:
  friend TreeModel tree_model(const RoundRecord&, std::optional<uint32_t>);
  void add_bonus(const RoundRecord& record, uint32_t parent);
  void order_children();

  std::vector<uint32_t> child_, first_child_, next_on_path_;
};

/// Makes the model of a record. root_token: for an AR round, whose record has no nodes, the token before it if it is
/// known. The fates follow the text that was written: after a stop token it is not known which nodes were right.
TreeModel tree_model(const RoundRecord& record, std::optional<uint32_t> root_token = std::nullopt);

/// How many tokens this round would have emitted with a chain: the likeliest token of each depth.
struct ChainEstimate {
  uint32_t emitted = 1;
  // It may have been more: the record does not have the drafter's likeliest token at the next depth.
  bool at_least = false;
};

/// None for an AR round and for a round that drafted a chain. The drafter's ranks at a depth do not depend on the path,
/// so any node of rank 0 has the chain's token of that depth. What the text suggests does depend on it: then the chain
/// is the path of rank 0 from the root.
std::optional<ChainEstimate> chain_estimate(const RoundRecord& record, const TreeModel& tree);

// Short labels for tokens, for one line of text.

inline constexpr size_t kLongestLabel = 24;  // characters

/// The label of a token, on one line and safe to show: spaces around a word are left out, runs of spaces shown as
/// "·×7", control characters escaped ("\n"), bytes that form no whole character as "‹E2 82›". Never empty. Longer
/// labels end in an ellipsis after `longest` characters. A token whose text is not known is "#1234", its id; one
/// without an id is "?". A control token that ends a turn is "end".
std::string token_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token,
                        size_t longest = kLongestLabel);

/// The label of a token in the tree. As token_label(), but line breaks are kReturnSign, which draw_word() draws, and
/// the spaces after them a number: "\u21b511" for a line break and eleven spaces.
inline constexpr std::string_view kReturnSign = "\u21b5";
std::string tree_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token);

/// The bytes in hexadecimal: "20 6F 72"; after `most` bytes an ellipsis.
std::string token_bytes(std::string_view bytes, size_t most = 8);

/// Number of characters; text must be valid UTF-8.
size_t characters(std::string_view text);
/// The text, or if it is longer than `count` characters its first ones and an ellipsis.
std::string shortened(std::string_view text, size_t count);

// The words of a round's tree, from the log that has the round.

/// The last token before a round: the last one that the round before emitted, or the reply's first token.
std::optional<uint32_t> token_before(const RoundLog& log, size_t round);

/// The model of a round of the log. A round without a draft has the token before it as its root.
TreeModel tree_of_round(const RoundRecord& record, const RoundLog& log, size_t round);

/// [nodes] the label of each, not shortened to any room.
std::vector<std::string> tree_labels(const TreeModel& tree, const RoundLog& log);

// A round in one sentence, for the line above the tree in Watch. Without ImGui.

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

/// The note at the likeliest guess where the accepted path leaves it, in three lines: what a single chain would have
/// brought in place of the tokens that the round emitted. sources: who guessed in the round.
std::array<std::string, 3> chain_note_lines(const ChainEstimate& chain, size_t emitted, DraftSources sources);

/// What the thickness of branches means: "branch thickness: how sure the drafter was".
std::string thickness_words(DraftSources sources);

/// "four", "twelve", "13": a number in a sentence.
std::string spelled(size_t number);
/// "so far", "next token", "2nd", "11th": the words above a column.
std::string depth_words(uint32_t depth);
/// The first letter as a capital.
std::string capitalised(std::string words);

}  // namespace canopy::app
