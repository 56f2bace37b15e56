#include "app/tree/tree_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "engine/base/text.h"
#include "engine/text/unicode.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {
namespace {

TreeNodeView view_of(const RoundNode& row) {
  TreeNodeView view;
  view.parent = row.node.parent;
  view.depth = row.node.depth;
  view.rank = row.node.rank;
  view.token = row.node.token;
  if (row.node.parent != TreeNode::none) view.sources = proposed_by(row.node);
  view.q = std::exp(std::min(0.0, row.node.log_q));
  view.path = std::exp(std::min(0.0, row.node.score));
  return view;
}

}  // namespace

bool TreeModel::on_path(uint32_t node) const {
  const uint32_t depth = nodes[node].depth;
  return depth < path.size() && path[depth] == node;
}

void TreeModel::add_bonus(const RoundRecord& record, uint32_t parent) {
  TreeNodeView view;
  view.parent = parent;
  view.depth = nodes[parent].depth + 1;
  for (const TreeNodeView& node : nodes) {
    if (node.parent == parent) view.rank = std::max(view.rank, node.rank + 1);
  }
  view.token = record.emitted.back();
  view.fate = NodeFate::bonus;
  view.path = nodes[parent].path;
  bonus = size();
  nodes.push_back(view);
  path.push_back(*bonus);
}

/// Sorts children by parent (a counting sort), then by rank.
void TreeModel::order_children() {
  first_child_.assign(nodes.size() + 1, 0);
  for (uint32_t i = 1; i < size(); ++i) ++first_child_[nodes[i].parent + 1];
  std::partial_sum(first_child_.begin(), first_child_.end(), first_child_.begin());
  child_.resize(nodes.size() - 1);
  std::vector<uint32_t> next(first_child_.begin(), first_child_.end() - 1);
  for (uint32_t i = 1; i < size(); ++i) child_[next[nodes[i].parent]++] = i;
  const auto by_rank = [&](uint32_t a, uint32_t b) { return nodes[a].rank < nodes[b].rank; };
  for (uint32_t i = 0; i < size(); ++i)
    std::stable_sort(child_.begin() + first_child_[i], child_.begin() + first_child_[i + 1], by_rank);
  next_on_path_.assign(nodes.size(), TreeNode::none);
  for (size_t i = 1; i < path.size(); ++i) next_on_path_[path[i - 1]] = path[i];
}

TreeModel tree_model(const RoundRecord& record, std::optional<uint32_t> root_token) {
  TreeModel tree;
  tree.nodes.reserve(record.nodes.size() + 2);
  for (const RoundNode& row : record.nodes) tree.nodes.push_back(view_of(row));
  if (tree.nodes.empty()) tree.nodes.push_back({.token = root_token});
  tree.sources = guessed_by(record);
  for (const RoundNode& row : record.nodes) tree.steps |= row.node.sources & kFromSteps;
  tree.match = record.match;
  const DraftedPart part = drafted_part(record);
  for (uint32_t node = part.last_node; node != TreeNode::none; node = tree.nodes[node].parent) {
    tree.nodes[node].fate = node == 0 ? NodeFate::root : NodeFate::accepted;
    tree.path.push_back(node);
  }
  std::reverse(tree.path.begin(), tree.path.end());
  for (uint32_t i = 1; i < tree.size(); ++i) {
    TreeNodeView& node = tree.nodes[i];
    if (node.fate == NodeFate::accepted) continue;
    const NodeFate above = tree.nodes[node.parent].fate;
    // What comes after the end of the reply was neither accepted nor rejected.
    const bool refused =
        (above == NodeFate::root || above == NodeFate::accepted) && !(part.cut && node.parent == part.last_node);
    node.fate = refused ? NodeFate::rejected : NodeFate::not_reached;
  }
  if (!part.cut && !record.emitted.empty()) tree.add_bonus(record, part.last_node);
  for (const TreeNodeView& node : tree.nodes) {
    ++tree.count[static_cast<size_t>(node.fate)];
    tree.depth = std::max(tree.depth, node.depth);
    tree.found += is_found(node) ? 1 : 0;
  }
  tree.order_children();
  return tree;
}

namespace {

/// [depth] the token of a chain, as far as the tree has it.
std::vector<std::optional<uint32_t>> chain_of(const TreeModel& tree) {
  std::vector<std::optional<uint32_t>> chain(size_t{tree.depth} + 2);
  uint32_t end = 0;  // of the path of rank 0
  for (uint32_t i = 1; i < tree.size(); ++i) {
    const TreeNodeView& node = tree.nodes[i];
    if (node.rank != 0 || node.fate == NodeFate::bonus || (tree.has_found() && node.parent != end)) continue;
    chain[node.depth] = node.token;
    end = i;
  }
  return chain;
}

}  // namespace

std::optional<ChainEstimate> chain_estimate(const RoundRecord& record, const TreeModel& tree) {
  if (record.nodes.size() < 2 || record.shape == DecodeMode::chain) return std::nullopt;
  const std::vector<std::optional<uint32_t>> likeliest = chain_of(tree);
  ChainEstimate estimate{0, false};
  for (size_t depth = 1; depth <= record.emitted.size(); ++depth) {
    ++estimate.emitted;
    if (depth >= likeliest.size() || !likeliest[depth]) {
      // If the accepted node at this depth has another rank, the chain ended here. If nothing is known of it, the chain
      // may have gone on.
      const bool accepted_other = depth < tree.path.size() && tree.nodes[tree.path[depth]].fate == NodeFate::accepted;
      estimate.at_least = !accepted_other;
      return estimate;
    }
    if (*likeliest[depth] != record.emitted[depth - 1]) return estimate;
  }
  // The chain was right up to the end of the round. If the reply went on, the chain may have had more right tokens.
  if (tree.bonus) estimate = {estimate.emitted + 1, true};
  return estimate;
}

namespace {

constexpr std::string_view kEllipsis = "\u2026";
constexpr size_t kMostBytes = 4096;  // of a token; no label needs more

/// Removes spaces at both ends, unless there is nothing else.
std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return text;
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

void append_blanks(std::string& label, size_t count, bool alone) {
  if (count == 1 && !alone) {
    label += ' ';
    return;
  }
  label += "\u00b7";
  if (count > 1) label += "\u00d7" + std::to_string(count);
}

/// The number of bytes at the front that form no valid UTF-8 character.
size_t broken_front(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Utf8Unit unit = next_utf8(text.substr(length));
    if (unit.kind == Utf8Kind::valid) break;
    length += unit.length;
  }
  return length;
}

}  // namespace

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string shortened(std::string_view text, size_t count) {
  if (characters(text) <= count) return std::string(text);
  size_t end = 0;
  for (size_t kept = 0; kept + 1 < count; ++kept) end += next_utf8(text.substr(end)).length;
  return std::string(text.substr(0, end)) + std::string(kEllipsis);
}

std::string token_bytes(std::string_view bytes, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(bytes.size(), most); ++i) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "%s%02X", i > 0 ? " " : "", static_cast<unsigned>(static_cast<uint8_t>(bytes[i])));
    out += hex;
  }
  if (bytes.size() > most) out += " " + std::string(kEllipsis);
  return out;
}

/// Whether a control token ends a turn, by its name: "<|im_end|>", "</s>", "<|eot_id|>", "<end_of_turn>", ...
static bool ends_a_turn(std::string_view name) {
  if (name.find("header") != std::string_view::npos || name.find("fim") != std::string_view::npos) return false;
  return std::ranges::any_of(std::array<std::string_view, 6>{"end", "eot", "eos", "eom", "</s>", "return"},
                             [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

std::string token_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token, size_t longest) {
  if (!token) return "?";
  if (!piece || piece->bytes.empty()) return "#" + std::to_string(*token);
  if (piece->control && ends_a_turn(piece->bytes)) return "end";
  std::string_view text = trimmed(piece->bytes.substr(0, kMostBytes));
  const bool blank = text.find_first_not_of(' ') == std::string_view::npos;
  std::string label;
  while (!text.empty()) {
    if (text.front() == ' ') {
      const size_t run = std::min(text.find_first_not_of(' '), text.size());
      append_blanks(label, run, blank);
      text.remove_prefix(run);
    } else if (const size_t broken = broken_front(text); broken > 0) {
      label += "\u2039" + token_bytes(text.substr(0, broken)) + "\u203a";
      text.remove_prefix(broken);
    } else {
      const size_t length = next_utf8(text).length;
      label += printable(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return shortened(label, longest);
}

std::string tree_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token) {
  if (!token || !piece || piece->bytes.find('\n') == std::string_view::npos) return token_label(piece, token);
  std::string label;
  std::string_view text = piece->bytes.substr(0, kMostBytes);
  while (!text.empty()) {
    const size_t line = std::min(text.find('\n'), text.size());
    const std::string_view words = text.substr(0, line);
    if (words.find_first_not_of(' ') == std::string_view::npos) {
      if (!words.empty()) label += std::to_string(words.size());
    } else {
      label += token_label(trace::Piece{words, piece->control}, token);
    }
    text.remove_prefix(line);
    if (text.empty()) break;
    label += kReturnSign;
    text.remove_prefix(1);
  }
  return shortened(label, kLongestLabel);
}

std::optional<uint32_t> token_before(const RoundLog& log, size_t round) {
  const ReplySummary& reply = log.replies()[log.summary(round).reply];
  if (round <= reply.first_round) return reply.first_token;
  const std::shared_ptr<const RoundRecord> before = log.round(round - 1);
  if (!before || before->emitted.empty()) return std::nullopt;
  return before->emitted.back();
}

TreeModel tree_of_round(const RoundRecord& record, const RoundLog& log, size_t round) {
  return tree_model(record, record.nodes.empty() ? token_before(log, round) : std::nullopt);
}

std::vector<std::string> tree_labels(const TreeModel& tree, const RoundLog& log) {
  std::vector<std::string> labels;
  for (const TreeNodeView& node : tree.nodes)
    labels.push_back(tree_label(node.token ? log.piece(*node.token) : std::nullopt, node.token));
  return labels;
}

namespace {

std::string tokens(size_t count) {
  return spelled(count) + (count == 1 ? " token" : " tokens") + " from one pass.";
}

/// Of the guesses in the order in which they were added, how many hold all that were right.
uint32_t guesses_needed(const TreeModel& tree) {
  uint32_t last = 0;
  for (const uint32_t node : tree.path)
    if (node != tree.bonus) last = std::max(last, node);
  return last;
}

}  // namespace

std::array<std::string, 3> chain_note_lines(const ChainEstimate& chain, size_t emitted, DraftSources sources) {
  const std::string first = (sources & kFromSuffix) == 0 ? "The drafter\u2019s favourite." : "The likeliest guess.";
  return {first, "A single chain ends here,",
          "with " + std::string(chain.at_least ? "at least " : "") + std::to_string(chain.emitted) +
              (chain.emitted == 1 ? " token" : " tokens") + " in place of " + std::to_string(emitted) + "."};
}

std::string thickness_words(DraftSources sources) {
  return std::string("branch thickness: how sure the ") + ((sources & kFromSuffix) == 0 ? "drafter" : "guess") + " was";
}

std::string spelled(size_t number) {
  static constexpr std::array<const char*, 13> words = {"no",    "one",   "two",  "three", "four",   "five",  "six",
                                                        "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  return number < words.size() ? words[number] : std::to_string(number);
}

std::string depth_words(uint32_t depth) {
  if (depth == 0) return "so far";
  if (depth == 1) return "next token";
  const uint32_t tens = depth % 100, ones = depth % 10;
  const char* end = tens >= 11 && tens <= 13 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th";
  return std::to_string(depth) + end;
}

std::string capitalised(std::string words) {
  if (!words.empty() && words.front() >= 'a' && words.front() <= 'z')
    words.front() = static_cast<char>(words.front() - 'a' + 'A');
  return words;
}

std::vector<CaptionPart> brief_caption(const TreeModel& tree, size_t emitted) {
  const uint32_t right = tree.counted(NodeFate::accepted);
  const CaptionPart rest = {CaptionPart::Kind::plain, (right > 0 ? ": " : "") + tokens(emitted)};
  if (right == 0) return {{CaptionPart::Kind::plain, capitalised(rest.text)}};
  return {{CaptionPart::Kind::accepted,
           capitalised(spelled(right)) + (right == 1 ? " guess was right" : " guesses were right")},
          rest};
}

std::vector<CaptionPart> briefest_caption(size_t emitted) {
  return {{CaptionPart::Kind::plain, capitalised(tokens(emitted))}};
}

std::vector<CaptionPart> tree_caption(const TreeModel& tree, const std::vector<std::string>& labels, size_t emitted) {
  using Kind = CaptionPart::Kind;
  const uint32_t drafted = tree.size() - 1 - (tree.bonus ? 1 : 0);
  if (drafted == 0)
    return {{Kind::plain, "Nothing was guessed: the big model wrote " + tokens(emitted) + " That is plain decoding."}};
  const uint32_t right = tree.counted(NodeFate::accepted);
  std::vector<CaptionPart> parts;
  const std::string from = tree.asked_text_alone() ? " from the text" : "";
  if (right == 0)
    parts.push_back({Kind::plain, "No guess" + from + " was right"});
  else
    parts.push_back({Kind::accepted, capitalised(spelled(right)) + (right == 1 ? " guess" : " guesses") + from +
                                         (right == 1 ? " was right" : " were right")});
  if (tree.bonus) {
    parts.push_back({Kind::plain, right == 0 ? ", so the big model added " : ", and the big model added "});
    parts.push_back({Kind::token, labels[*tree.bonus]});
    parts.push_back({Kind::plain, " itself: " + tokens(emitted)});
  } else {
    parts.push_back({Kind::plain, ", and the text ended there: " + tokens(emitted)});
  }
  const uint32_t needed = guesses_needed(tree);
  if (right > 0 && needed * 2 < drafted) {
    const std::string words = needed == 1 ? "One guess" : capitalised(spelled(needed)) + " guesses";
    parts.push_back({Kind::aside, " " + words + " would have brought the same."});
  }
  return parts;
}

}  // namespace canopy::app
