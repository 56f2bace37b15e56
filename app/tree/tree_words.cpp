#include "app/tree/tree_words.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace canopy::app {
namespace {

/// The nodes below each node, by node.
std::vector<uint32_t> nodes_below(const TreeModel& tree) {
  std::vector<uint32_t> below(tree.size(), 0);
  for (uint32_t node = tree.size(); node-- > 1;) {
    if (node != tree.bonus) below[tree.nodes[node].parent] += below[node] + 1;
  }
  return below;
}

/// The likeliest child that the target decided against, or TreeNode::none.
uint32_t likeliest_rejected(const TreeModel& tree, uint32_t node) {
  for (const uint32_t child : tree.children(node)) {
    if (tree.nodes[child].fate == NodeFate::rejected) return child;
  }
  return TreeNode::none;
}

/// The nodes in the order in which they get words; the first `due` have them in any case.
std::vector<uint32_t> order_of_words(const TreeModel& tree, uint32_t& due) {
  std::vector<uint32_t> order;
  std::vector<uint8_t> taken(tree.size(), 0);
  const auto take = [&](uint32_t node) {
    if (taken[node]) return;
    taken[node] = 1;
    order.push_back(node);
  };
  take(0);
  for (const uint32_t node : tree.path) take(node);
  for (const uint32_t node : tree.path) {
    if (const uint32_t sibling = likeliest_rejected(tree, node); sibling != TreeNode::none) take(sibling);
  }
  due = static_cast<uint32_t>(order.size());
  // Of equal probabilities the node that was drafted first.
  using Candidate = std::pair<double, int64_t>;  // path probability, minus the node's index
  std::priority_queue<Candidate> open;
  const auto offer_children = [&](uint32_t node) {
    for (const uint32_t child : tree.children(node)) {
      if (!taken[child]) open.push({tree.nodes[child].path, -static_cast<int64_t>(child)});
    }
  };
  for (uint32_t i = 0; i < due; ++i) offer_children(order[i]);
  while (!open.empty()) {
    const auto node = static_cast<uint32_t>(-open.top().second);
    open.pop();
    take(node);
    offer_children(node);
  }
  return order;
}

TreeWords words_of(const TreeModel& tree, const std::vector<uint32_t>& order, uint32_t count,
                   const std::vector<uint32_t>& below) {
  TreeWords words;
  words.named.assign(tree.size(), 0);
  words.tuft_of.assign(tree.size(), -1);
  for (uint32_t i = 0; i < count; ++i) words.named[order[i]] = 1;
  for (uint32_t node = 0; node < tree.size(); ++node) {
    if (!words.named[node]) continue;
    Tuft tuft;
    tuft.parent = node;
    for (const uint32_t child : tree.children(node)) {
      if (words.named[child]) continue;
      tuft.heads.push_back(child);
      tuft.nodes += below[child] + 1;
      tuft.mass += tree.nodes[child].path;
    }
    if (tuft.heads.empty()) continue;
    tuft.rejected = tree.on_path(node) && tree.nodes[tuft.heads.front()].fate == NodeFate::rejected;
    words.tuft_of[node] = static_cast<int32_t>(words.tufts.size());
    words.tufts.push_back(std::move(tuft));
  }
  return words;
}

/// The extent of a subtree at each depth below its root, the deepest level first, so that the level of a parent is
/// appended at the end. Rows are relative to `origin`, so that moving a subtree changes no level.
struct Outline {
  struct Level {
    float top, bottom;
  };
  std::vector<Level> levels;
  float origin = 0;

  Level level(size_t from_top) const {
    const Level& l = levels[levels.size() - 1 - from_top];
    return {l.top + origin, l.bottom + origin};
  }
  float top() const {
    float least = std::numeric_limits<float>::max();
    for (const Level& l : levels) least = std::min(least, l.top);
    return least + origin;
  }
  float bottom() const {
    float most = std::numeric_limits<float>::lowest();
    for (const Level& l : levels) most = std::max(most, l.bottom);
    return most + origin;
  }
};

/// How far `next` must move down to lie below all of `placed`.
float below(const Outline& placed, const Outline& next) {
  float shift = 0;
  for (size_t i = 0; i < std::min(placed.levels.size(), next.levels.size()); ++i)
    shift = std::max(shift, placed.level(i).bottom - next.level(i).top);
  return shift;
}

float above(const Outline& placed, const Outline& next) {
  float shift = 0;
  for (size_t i = 0; i < std::min(placed.levels.size(), next.levels.size()); ++i)
    shift = std::min(shift, placed.level(i).top - next.level(i).bottom);
  return shift;
}

/// The outline around both; reuses the memory of the deeper one.
Outline joined(Outline a, Outline b) {
  if (a.levels.size() < b.levels.size()) std::swap(a, b);
  for (size_t i = 0; i < b.levels.size(); ++i) {
    const Outline::Level theirs = b.level(i);
    Outline::Level& mine = a.levels[a.levels.size() - 1 - i];
    mine.top = std::min(mine.top, theirs.top - a.origin);
    mine.bottom = std::max(mine.bottom, theirs.bottom - a.origin);
  }
  return a;
}

class Placement {
 public:
  Placement(const TreeModel& tree, const TreeWords& words) : tree_(tree), words_(words) {}

  WordRows run() {
    const uint32_t count = tree_.size();
    offset_.assign(count, 0);
    tuft_offset_.assign(words_.tufts.size(), 0);
    outlines_.resize(count);
    for (uint32_t node = count; node-- > 0;) {
      if (words_.named[node]) outlines_[node] = place_children(node);
    }
    WordRows rows;
    rows.node.assign(count, 0);
    rows.tuft.assign(words_.tufts.size(), 0);
    const float top = outlines_[0].top();
    rows.count = outlines_[0].bottom() - top;
    rows.node[0] = -top;
    for (uint32_t node = 1; node < count; ++node) {
      if (words_.named[node]) rows.node[node] = rows.node[tree_.nodes[node].parent] + offset_[node];
    }
    for (size_t i = 0; i < words_.tufts.size(); ++i) rows.tuft[i] = rows.node[words_.tufts[i].parent] + tuft_offset_[i];
    return rows;
  }

 private:
  static constexpr float kHalf = 0.5f;
  static constexpr float kBehindLeaf = 0.3f;  // half the height that stays free behind a leaf

  static Outline leaf(float half, bool keeps_next_free) {
    Outline outline;
    if (keeps_next_free) outline.levels.push_back({-kBehindLeaf, kBehindLeaf});
    outline.levels.push_back({-half, half});
    return outline;
  }

  Outline place_children(uint32_t node) {
    Outline all;
    uint32_t turns = 0;
    // Puts a subtree beside what is placed, and returns its row relative to the node.
    const auto put = [&](Outline next) {
      float row = 0;
      if (!all.levels.empty()) {
        const float down = below(all, next), up = above(all, next);
        const float reach_down = std::max(all.bottom(), next.bottom() + down);
        const float reach_up = -std::min(all.top(), next.top() + up);
        constexpr float kEqual = 0.01f;
        const bool goes_down = std::abs(reach_down - reach_up) < kEqual ? turns++ % 2 == 0 : reach_down < reach_up;
        row = goes_down ? down : up;
      }
      next.origin += row;
      all = all.levels.empty() ? std::move(next) : joined(std::move(all), std::move(next));
      return row;
    };
    for (const uint32_t child : tree_.children(node)) {
      if (words_.named[child]) offset_[child] = put(std::move(outlines_[child]));
    }
    if (const int32_t tuft = words_.tuft_of[node]; tuft >= 0)
      tuft_offset_[static_cast<size_t>(tuft)] = put(leaf(kTuftRows / 2, true));
    if (all.levels.empty()) return leaf(kHalf, true);
    all.levels.push_back({-kHalf - all.origin, kHalf - all.origin});
    return all;
  }

  const TreeModel& tree_;
  const TreeWords& words_;
  std::vector<float> offset_;       // [nodes] rows from the parent
  std::vector<float> tuft_offset_;  // [tufts] likewise
  std::vector<Outline> outlines_;   // [nodes] of subtrees that are not placed yet
};

}  // namespace

WordRows place_words(const TreeModel& tree, const TreeWords& words) {
  return Placement(tree, words).run();
}

TreeWords choose_words(const TreeModel& tree, float rows) {
  uint32_t due = 0;
  const std::vector<uint32_t> below = nodes_below(tree), order = order_of_words(tree, due);
  // More words need more rows, all but exactly; the most that fit are found by halving.
  uint32_t fits = due, too_many = static_cast<uint32_t>(order.size()) + 1;
  TreeWords best = words_of(tree, order, due, below);
  while (fits + 1 < too_many) {
    const uint32_t half = fits + (too_many - fits) / 2;
    TreeWords words = words_of(tree, order, half, below);
    if (place_words(tree, words).count <= rows) {
      fits = half;
      best = std::move(words);
    } else {
      too_many = half;
    }
  }
  best.due = due;
  return best;
}

namespace {

constexpr float kUncut = 1e9f;

/// The width of a column whose labels are cut to `room` pixels, by claim.
float column_width(const ColumnNeed& need, const float* room) {
  float label = 0;
  for (size_t claim = 0; claim < kClaims; ++claim) label = std::max(label, std::min(need.label[claim], room[claim]));
  return label + need.around;
}

float total_width(std::span<const ColumnNeed> needs, const float* room, float gap) {
  float total = gap * static_cast<float>(needs.size() - 1);
  for (const ColumnNeed& need : needs) total += column_width(need, room);
  return total;
}

/// The largest room for labels of one claim with which everything fits; `shortest` if nothing does.
float fitting_room(std::span<const ColumnNeed> needs, float* room, size_t claim, float gap, const ColumnRoom& space) {
  float widest = space.shortest;
  for (const ColumnNeed& need : needs) widest = std::max(widest, need.label[claim]);
  float fits = space.shortest, too_much = widest;
  for (int halving = 0; halving < 16; ++halving) {
    room[claim] = (fits + too_much) * 0.5f;
    (total_width(needs, room, gap) <= space.width ? fits : too_much) = room[claim];
  }
  return room[claim] = fits;
}

}  // namespace

TreeColumns place_columns(std::span<const ColumnNeed> needs, const ColumnRoom& space) {
  TreeColumns columns;
  std::fill_n(columns.label_room, kClaims, kUncut);
  if (needs.empty()) return columns;
  float gap = space.gap;
  auto fits = [&] { return total_width(needs, columns.label_room, gap) <= space.width; };
  for (size_t claim = kClaims; claim-- > 0 && !fits();) {
    columns.tight = true;
    fitting_room(needs, columns.label_room, claim, gap, space);
    if (fits() || gap == space.tight_gap) continue;
    gap = space.tight_gap;
    fitting_room(needs, columns.label_room, claim, gap, space);
  }
  const float spare = std::max(0.0f, space.width - total_width(needs, columns.label_room, gap));
  if (needs.size() > 1) gap += spare / static_cast<float>(needs.size() - 1);
  float x = 0;
  for (const ColumnNeed& need : needs) {
    columns.x.push_back(x);
    columns.width.push_back(column_width(need, columns.label_room));
    x += columns.width.back() + gap;
  }
  columns.total = x - gap;
  return columns;
}

}  // namespace canopy::app
