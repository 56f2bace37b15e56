#include "app/tree/tree_look.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace canopy::app {
namespace {

/// All nodes, those of the path first.
std::vector<uint32_t> path_first(const TreeModel& tree) {
  std::vector<uint32_t> order(tree.path);
  for (uint32_t i = 0; i < tree.size(); ++i)
    if (!tree.on_path(i)) order.push_back(i);
  return order;
}

}  // namespace

std::vector<NodeKey> node_keys(const TreeModel& tree, uint32_t context) {
  std::vector<NodeKey> keys;
  keys.reserve(tree.size());
  for (const TreeNodeView& node : tree.nodes)
    keys.push_back({uint64_t{context} + node.depth, node.token.value_or(TreeNode::none)});
  return keys;
}

std::vector<uint32_t> match_nodes(const TreeModel& before, const std::vector<NodeKey>& before_keys,
                                  const TreeModel& now, const std::vector<NodeKey>& now_keys) {
  std::map<NodeKey, std::vector<uint32_t>> known;  // nodes of each key, the best match last
  std::vector<uint32_t> order = path_first(before);
  std::reverse(order.begin(), order.end());
  for (const uint32_t node : order) known[before_keys[node]].push_back(node);
  std::vector<uint32_t> match(now.size(), TreeNode::none);
  for (const uint32_t node : path_first(now)) {
    const auto found = known.find(now_keys[node]);
    if (found == known.end() || found->second.empty()) continue;
    match[node] = found->second.back();
    found->second.pop_back();
  }
  return match;
}

void blend(const std::vector<NodeBox>& before, const std::vector<uint32_t>& match, float t, std::vector<NodeBox>& now) {
  const float left = 1 - ease_in_out(t);
  for (size_t i = 0; i < now.size(); ++i) {
    if (match[i] >= before.size()) continue;
    const NodeBox& from = before[match[i]];
    now[i].x += (from.x - now[i].x) * left;
    now[i].y += (from.y - now[i].y) * left;
  }
}

float ease_in_out(float t) {
  t = std::clamp(t, 0.0f, 1.0f);
  return t < 0.5f ? 4 * t * t * t : 1 - std::pow(2 - 2 * t, 3.0f) / 2;
}

float ease_out(float t) {
  t = std::clamp(t, 0.0f, 1.0f);
  return 1 - std::pow(1 - t, 3.0f);
}

namespace {

constexpr float kDropped = 0.3f;    // strength of the colours of nodes that the commit drops
constexpr float kWithered = 0.55f;  // width of a limb that the target decided against

bool drafted(const TreeNodeView& node) {
  return node.fate != NodeFate::root && node.fate != NodeFate::bonus;
}

/// Shows nodes in the order of the record, which is the order of insertion: best prefix first. The newest one fades in.
void insert_nodes(const TreeModel& tree, float progress, TreeReveal& out) {
  const float inserted = progress * static_cast<float>(tree.size() - (tree.bonus ? 2 : 1));
  for (uint32_t i = 1; i < tree.size(); ++i)
    if (drafted(tree.nodes[i])) out.nodes[i].shown = std::clamp(inserted - static_cast<float>(i - 1), 0.0f, 1.0f);
}

/// Judges the nodes that the walk has come to and lights the path behind it. walked: steps from the root, with the part
/// of the present one. The children of a node are judged when the light leaves it; what was decided against withers
/// while the light runs to the next node, with all that hangs on it.
void walk(const TreeModel& tree, float walked, TreeReveal& out) {
  for (uint32_t i = 1; i < tree.size(); ++i) {
    const TreeNodeView& node = tree.nodes[i];
    if (!drafted(node)) continue;
    NodeReveal& now = out.nodes[i];
    if (!tree.on_path(node.parent)) {
      now.judged = out.nodes[node.parent].judged;
      now.width = out.nodes[node.parent].width;
      continue;
    }
    const float step = walked - static_cast<float>(node.depth - 1);
    now.judged = step > 0;
    if (tree.on_path(i))
      now.lit = std::clamp(step, 0.0f, 1.0f);
    else
      now.width = 1 - (1 - kWithered) * ease_out(step);
  }
}

/// Dims what is not kept and lets it stand as thick as it was at the end, since the whole round is shown afterwards.
void drop(const TreeModel& tree, float progress, TreeReveal& out) {
  const float dip = std::min(1.0f, 2 * (1 - std::abs(2 * progress - 1)));
  const float back = std::max(0.0f, 2 * progress - 1);
  for (uint32_t i = 1; i < tree.size(); ++i) {
    if (tree.on_path(i)) continue;
    out.nodes[i].strength = 1 - (1 - kDropped) * dip;
    out.nodes[i].width = kWithered + (1 - kWithered) * back;
  }
}

}  // namespace

const std::array<PhaseText, kPhases>& phase_texts() {
  static constexpr std::array<PhaseText, kPhases> texts = {
      {{"Guess", "A small drafter guesses the next tokens, several for every place and all at the same moment."},
       {"Grow",
        "The likeliest continuation is added first, then the next likeliest, until the tree has the chosen size."},
       {"Check",
        "The big model reads the whole tree in one pass. On a GPU that takes little longer than a single token."},
       {"Walk", "Token by token, the branch that the big model agrees with lights up. The others wither."},
       {"Bonus",
        "Where no guess fits, the big model writes the next token itself. That one is free: it comes with the pass."},
       {"Keep",
        "The confirmed tokens fly into the text: {n} from one pass. The text is what the big model would write "
        "alone."}}};
  return texts;
}

std::string_view phase_name(Phase phase, const TreeModel& tree) {
  if (phase == Phase::bonus && tree.is_plain()) return "Write";
  return phase_texts()[static_cast<size_t>(phase)].name;
}

std::string phase_sentence(Phase phase, size_t emitted) {
  std::string words(phase_texts()[static_cast<size_t>(phase)].words);
  if (const size_t at = words.find("{n}"); at != std::string::npos) words.replace(at, 3, std::to_string(emitted));
  return words;
}

/// Of what guesses one token behind another.
static std::string who_steps(DraftSources steps) {
  switch (steps) {
    case kFromMtp: return "The big model\u2019s head for further tokens guesses them";
    case kFromEagle: return "An EAGLE-3 head guesses them from what the big model computed";
    case kFromAssistant: return "An assistant guesses them by looking into the big model\u2019s memory";
    default: return "A smaller model writes its own next tokens";
  }
}

std::string phase_sentence(Phase phase, size_t emitted, const TreeModel& tree) {
  if (phase == Phase::bonus && tree.is_plain())
    return "The big model writes the next token: plain decoding takes one from each pass.";
  if (tree.asked_text_alone() && phase <= Phase::insert)
    return "The last " + (tree.match == 1 ? "token" : spelled(tree.match) + " tokens") +
           " of the text were written before: what followed then is guessed again, the likeliest first. No drafter is "
           "asked.";
  const bool adds = tree.has_found() && phase == Phase::fill;
  const bool one_by_one = tree.steps != 0 && phase == Phase::fill;
  return (one_by_one ? who_steps(tree.steps) + ", one after another, and goes on behind its likeliest guesses."
                     : phase_sentence(phase, emitted)) +
         (adds ? " The text adds what stood behind the same words before." : "");
}

TreeReveal reveal(const TreeModel& tree, Phase phase, float progress) {
  progress = std::clamp(progress, 0.0f, 1.0f);
  TreeReveal out;
  out.nodes.resize(tree.size());
  out.whole = phase == Phase::commit && progress >= 1;
  if (out.whole) return out;
  const uint32_t last = static_cast<uint32_t>(tree.path.size()) - (tree.bonus ? 2 : 1);  // drafted part of the path
  for (uint32_t i = 1; i < tree.size(); ++i) {
    const bool late = phase < Phase::bonus && tree.nodes[i].fate == NodeFate::bonus;
    if (late) out.nodes[i].shown = 0;
    if (phase < Phase::walk) out.nodes[i].judged = false;
  }
  switch (phase) {
    case Phase::fill:
      out.draft_shown = true;
      out.filled = progress;
      for (uint32_t i = 1; i < tree.size(); ++i) out.nodes[i].shown = 0;
      break;
    case Phase::insert: insert_nodes(tree, progress, out); break;
    case Phase::verify: out.verified = progress; break;
    case Phase::walk: {
      const float walked = progress * static_cast<float>(last + 1);
      walk(tree, walked, out);
      out.walker = tree.path[std::min(static_cast<uint32_t>(walked + 1e-4f), last)];
      break;
    }
    case Phase::bonus:
      walk(tree, static_cast<float>(last + 1), out);
      if (tree.bonus) out.nodes[*tree.bonus].shown = progress;
      break;
    case Phase::commit: drop(tree, progress, out); break;
  }
  return out;
}

std::vector<std::vector<uint32_t>> draft_positions(const TreeModel& tree) {
  std::vector<std::vector<uint32_t>> positions(tree.depth);
  for (uint32_t i = 1; i < tree.size(); ++i)
    if ((tree.nodes[i].sources & kFromDflash) != 0) positions[tree.nodes[i].depth - 1].push_back(i);
  for (std::vector<uint32_t>& nodes : positions) {
    const auto rank = [&](uint32_t node) { return tree.nodes[node].rank; };
    const auto token = [&](uint32_t node) { return tree.nodes[node].token.value_or(TreeNode::none); };
    const auto lower_rank = [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); };
    // Where the text has a part in the tree, a token has other ranks behind other words: the least counts.
    std::stable_sort(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) {
      return token(a) != token(b) ? token(a) < token(b) : lower_rank(a, b);
    });
    nodes.erase(std::unique(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) { return token(a) == token(b); }),
                nodes.end());
    std::stable_sort(nodes.begin(), nodes.end(), lower_rank);
  }
  while (!positions.empty() && positions.back().empty()) positions.pop_back();
  return positions;
}

NodeLook look_of(const TreeModel& tree, const TreeReveal& reveal, uint32_t node) {
  const NodeFate fate = tree.nodes[node].fate;
  if (fate == NodeFate::root) return NodeLook::root;
  if (fate == NodeFate::bonus) return NodeLook::bonus;
  if (!reveal.nodes[node].judged) return NodeLook::undecided;
  if (fate == NodeFate::accepted) return NodeLook::accepted;
  return fate == NodeFate::rejected ? NodeLook::rejected : NodeLook::not_reached;
}

NodeLook look_of(const TreeReveal& reveal, const Tuft& tuft) {
  if (!reveal.nodes[tuft.heads.front()].judged) return NodeLook::undecided;
  return tuft.rejected ? NodeLook::rejected : NodeLook::not_reached;
}

float strength_of(const TreeReveal& reveal, uint32_t node) {
  return reveal.nodes[node].shown * reveal.nodes[node].strength;
}

float share_shown(const TreeReveal& reveal, const Tuft& tuft) {
  // The nodes of a tuft are added one after the other, its heads among them.
  float sum = 0;
  for (const uint32_t head : tuft.heads) sum += reveal.nodes[head].shown;
  return sum / static_cast<float>(tuft.heads.size());
}

float pill_width(const TreeGeometry& geometry, const TreeReveal& reveal, uint32_t node) {
  const NodeBox& box = geometry.nodes[node];
  return reveal.nodes[node].judged && reveal.nodes[node].lit >= 1 ? box.width : box.width - box.figure;
}

float pill_round(const TreeNodeView& node, float pill_height) {
  return node.sources == kFromSuffix ? 0 : pill_height * 0.28f;
}

float found_corner(float pill_height, float scale) {
  return std::min(6 * scale, pill_height * 0.36f);
}

bool is_found(const TreeModel& tree, const Tuft& tuft) {
  return std::ranges::any_of(tuft.heads, [&](uint32_t head) { return is_found(tree.nodes[head]); });
}

Colour limb_colour(const Theme& t, NodeLook look, bool hollow) {
  switch (look) {
    case NodeLook::accepted: return t.accepted;
    case NodeLook::bonus: return t.bonus;
    case NodeLook::rejected: return hollow ? t.limb_rejected_bg : t.limb_rejected;
    case NodeLook::not_reached: return t.limb_unreached;
    default: return t.limb;
  }
}

Colour twig_end_colour(const Theme& t, NodeLook look) {
  const bool decided_against = look == NodeLook::rejected || look == NodeLook::not_reached;
  return decided_against ? t.unreached : mix(t.limb, t.text3, 0.5f);
}

Colour word_colour(const Theme& t, const TreeNodeView& node, NodeLook look) {
  if (is_of_other_chat(node)) return t.text3;
  switch (look) {
    case NodeLook::root:
    case NodeLook::accepted: return t.text;
    case NodeLook::undecided: return t.text2;
    case NodeLook::rejected: return t.rejected_text;
    case NodeLook::bonus: return t.bonus_text;
    default: return t.text3;
  }
}

Colour found_colour(const Theme& t, NodeLook look) {
  if (look == NodeLook::accepted) return t.accepted;
  if (look == NodeLook::rejected) return t.rejected;
  return look == NodeLook::not_reached ? t.unreached : t.text3;
}

Colour fate_colour(const Theme& t, NodeFate fate) {
  const std::array<Colour, kFates> table = {t.text, t.accepted, t.rejected, t.unreached, t.bonus};
  return table[static_cast<size_t>(fate)];
}

Colour fate_text_colour(const Theme& t, NodeFate fate) {
  const std::array<Colour, kFates> table = {t.text, t.accepted_text, t.rejected_text, t.text3, t.bonus_text};
  return table[static_cast<size_t>(fate)];
}

}  // namespace canopy::app
