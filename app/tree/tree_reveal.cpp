#include "app/tree/tree_reveal.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {
namespace {

constexpr float kDropped = 0.3f;  // strength of the colours of nodes that the commit drops

bool drafted(const TreeNodeView& node) {
  return node.fate != NodeFate::root && node.fate != NodeFate::bonus;
}

/// Shows nodes in the order of the record, which is the order of insertion: best prefix first. The newest one fades in.
void insert_nodes(const TreeModel& tree, float progress, TreeReveal& out) {
  const float inserted = progress * static_cast<float>(tree.size() - (tree.bonus ? 2 : 1));
  for (uint32_t i = 1; i < tree.size(); ++i)
    if (drafted(tree.nodes[i])) out.nodes[i].shown = std::clamp(inserted - static_cast<float>(i - 1), 0.0f, 1.0f);
}

/// Judges the nodes that the walk has reached: the children of each visited node, and all nodes below rejected ones.
void judge(const TreeModel& tree, uint32_t steps, TreeReveal& out) {
  for (uint32_t i = 1; i < tree.size(); ++i) {
    const TreeNodeView& node = tree.nodes[i];
    if (!drafted(node)) continue;
    const NodeReveal& above = out.nodes[node.parent];
    const bool reached = tree.on_path(node.parent) && node.depth <= steps;
    const bool below_refused = !tree.on_path(node.parent) && above.judged;
    out.nodes[i].judged = reached || below_refused;
  }
}

}  // namespace

const std::array<PhaseText, kPhases>& phase_texts() {
  static constexpr std::array<PhaseText, kPhases> texts = {{{"Draft", "all positions fill together"},
                                                            {"Build", "best prefixes first"},
                                                            {"Verify", "the whole tree in one pass"},
                                                            {"Walk", "follow the target\u2019s choice"},
                                                            {"Bonus", "its own token comes out"},
                                                            {"Commit", "keep the path in the cache"}}};
  return texts;
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
      const uint32_t steps = static_cast<uint32_t>(std::lround(progress * static_cast<float>(last + 1)));
      judge(tree, steps, out);
      out.walker = tree.path[std::min(steps, last)];
      break;
    }
    case Phase::bonus:
      if (tree.bonus) out.nodes[*tree.bonus].shown = progress;
      break;
    case Phase::commit:
      for (uint32_t i = 1; i < tree.size(); ++i) {
        if (tree.on_path(i)) continue;
        // Dims and brightens again, since all nodes are drawn fully after the phase.
        const float dip = 1 - std::abs(2 * progress - 1);
        out.nodes[i].strength = 1 - (1 - kDropped) * std::min(1.0f, dip * 2);
      }
      break;
  }
  return out;
}

std::vector<std::vector<uint32_t>> draft_positions(const TreeModel& tree) {
  std::vector<std::vector<uint32_t>> positions(tree.depth);
  for (uint32_t i = 1; i < tree.size(); ++i)
    if (drafted(tree.nodes[i])) positions[tree.nodes[i].depth - 1].push_back(i);
  for (std::vector<uint32_t>& nodes : positions) {
    const auto rank = [&](uint32_t node) { return tree.nodes[node].rank; };
    std::stable_sort(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
    nodes.erase(std::unique(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) { return rank(a) == rank(b); }),
                nodes.end());
  }
  while (!positions.empty() && positions.back().empty()) positions.pop_back();
  return positions;
}

}  // namespace canopy::app
