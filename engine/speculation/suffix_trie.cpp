#include "engine/speculation/suffix_trie.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr size_t kFewEdges = 64;
constexpr size_t kFewDead = 4096;  // tokens of forgotten texts that are kept,
                                   // however few others there are

uint64_t mixed(uint32_t parent, uint32_t token) {
  uint64_t key = uint64_t{parent} << 32 | token;
  key ^= key >> 31;
  key *= 0x9E3779B97F4A7C15u;
  return key ^ key >> 29;
}

}  // namespace

SuffixTrie::SuffixTrie(uint32_t max_depth) : max_depth_(max_depth) {
  if (max_depth < 1 || max_depth > kMostDepth) {
    throw bad_input("A suffix trie of " + std::to_string(max_depth) + " tokens was asked for; allowed: 1 to " +
                    std::to_string(kMostDepth) + ".");
  }
  clear();
}

void SuffixTrie::clear() {
  texts_.clear();
  tokens_.clear();
  forgotten_ = 0;
  live_tokens_ = 0;
  nodes_.assign(1, Node{});
  free_.clear();
  edges_.assign(kFewEdges, Edge{});
  used_edges_ = 0;
  ends_.clear();
}

void SuffixTrie::begin_text() {
  texts_.push_back({forgotten_ + tokens_.size(), 0});
  ends_.clear();
}

void SuffixTrie::append(uint32_t token) {
  if (texts_.empty()) begin_text();
  const uint64_t position = forgotten_ + tokens_.size();
  tokens_.push_back(token);
  ++texts_.back().size;
  ++live_tokens_;
  if (ends_.size() == max_depth_) ends_.pop_back();
  // ends_[k] becomes the string one longer, which is ends_[k + 1] from now on.
  for (uint32_t& node : ends_) node = extend(node, position);
  ends_.push_front(extend(0, position));
}

uint32_t SuffixTrie::extend(uint32_t node, uint64_t position) {
  const uint32_t token = token_at(position);
  const uint32_t child = child_of(node, token);
  if (child == kNone) {
    Node& here = nodes_[node];
    if (node != 0 && here.count == 1 && here.children == 0) {  // nothing else stands there
      here.label = position - here.length;
      ++here.length;
      return node;
    }
    const uint32_t leaf = make_node();
    nodes_[leaf].count = 1;
    nodes_[leaf].label = position;
    nodes_[leaf].length = 1;
    link(node, leaf);
    return leaf;
  }
  // Whether every place of the string goes on like this: then its end is no
  // node of its own any more.
  const bool moves = node != 0 && nodes_[node].children == 1 && nodes_[child].count + 1 == nodes_[node].count;
  if (nodes_[child].length == 1) {
    ++nodes_[child].count;
    if (!moves) return child;
    const uint32_t parent = nodes_[node].parent;
    unlink(child);
    unlink(node);
    nodes_[child].label -= nodes_[node].length;
    nodes_[child].length += nodes_[node].length;
    free_.push_back(node);
    link(parent, child);
    return child;
  }
  unlink(child);
  if (moves) {
    nodes_[node].label = nodes_[child].label - nodes_[node].length;
    ++nodes_[node].length;
    ++nodes_[child].label;
    --nodes_[child].length;
    link(node, child);
    return node;
  }
  const uint32_t middle = make_node();
  nodes_[middle].count = nodes_[child].count + 1;
  nodes_[middle].label = nodes_[child].label;
  nodes_[middle].length = 1;
  ++nodes_[child].label;
  --nodes_[child].length;
  link(node, middle);
  link(middle, child);
  return middle;
}

void SuffixTrie::forget_oldest() {
  if (texts_.size() < 2) throw std::logic_error("The only text of a suffix trie cannot be forgotten.");
  const Text text = texts_.front();
  std::vector<uint32_t> path;
  for (uint64_t start = text.first; start < text.first + text.size; ++start) {
    const uint64_t end = std::min(start + max_depth_, text.first + text.size);
    path.clear();
    uint32_t node = 0;
    for (uint64_t at = start; at < end; at += nodes_[node].length) {
      node = child_of(node, token_at(at));
      path.push_back(node);
    }
    for (size_t i = path.size(); i-- > 0;) {
      if (--nodes_[path[i]].count > 0) continue;
      unlink(path[i]);
      free_.push_back(path[i]);
    }
  }
  texts_.pop_front();
  live_tokens_ -= static_cast<size_t>(text.size);
  if (tokens_.size() - live_tokens_ > std::max(live_tokens_, kFewDead)) rebuild();
}

void SuffixTrie::rebuild() {
  std::vector<uint32_t> tokens(tokens_.end() - static_cast<std::ptrdiff_t>(live_tokens_), tokens_.end());
  const std::deque<Text> texts = std::move(texts_);
  clear();
  size_t at = 0;
  for (const Text& text : texts) {
    begin_text();
    append(std::span(tokens).subspan(at, static_cast<size_t>(text.size)));
    at += static_cast<size_t>(text.size);
  }
}

size_t SuffixTrie::memory_bytes() const {
  return tokens_.capacity() * sizeof(uint32_t) + nodes_.capacity() * sizeof(Node) +
         free_.capacity() * sizeof(uint32_t) + edges_.capacity() * sizeof(Edge) + texts_.size() * sizeof(Text) +
         ends_.size() * sizeof(uint32_t);
}

bool SuffixTrie::follow(Place& place, uint32_t token) const {
  const Node& node = nodes_[place.node];
  if (place.into < node.length) {
    if (token_at(node.label + place.into) != token) return false;
    ++place.into;
    return true;
  }
  const uint32_t child = child_of(place.node, token);
  if (child == kNone) return false;
  place = {child, 1};
  return true;
}

void SuffixTrie::children(Place place, std::vector<Child>& out) const {
  const Node& node = nodes_[place.node];
  if (place.into < node.length) {
    out.push_back({token_at(node.label + place.into), node.count, {place.node, place.into + 1}});
    return;
  }
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  for (uint32_t child = node.first_child; child != kNone; child = nodes_[child].next_sibling) {
    out.push_back({first_token(nodes_[child]), nodes_[child].count, {child, 1}});
  }
  std::sort(out.begin() + first, out.end(),
            [](const Child& a, const Child& b) { return a.count != b.count ? a.count > b.count : a.token < b.token; });
}

uint32_t SuffixTrie::make_node() {
  if (free_.empty()) {
    nodes_.emplace_back();
    return static_cast<uint32_t>(nodes_.size()) - 1;
  }
  const uint32_t node = free_.back();
  free_.pop_back();
  nodes_[node] = {};
  return node;
}

void SuffixTrie::link(uint32_t parent, uint32_t child) {
  Node& above = nodes_[parent];
  Node& node = nodes_[child];
  node.parent = parent;
  node.next_sibling = above.first_child;
  node.previous_sibling = kNone;
  if (above.first_child != kNone) nodes_[above.first_child].previous_sibling = child;
  above.first_child = child;
  ++above.children;
  put_edge(parent, first_token(node), child);
}

void SuffixTrie::unlink(uint32_t child) {
  const Node& node = nodes_[child];
  Node& above = nodes_[node.parent];
  drop_edge(node.parent, first_token(node));
  (node.previous_sibling == kNone ? above.first_child : nodes_[node.previous_sibling].next_sibling) = node.next_sibling;
  if (node.next_sibling != kNone) nodes_[node.next_sibling].previous_sibling = node.previous_sibling;
  --above.children;
}

size_t SuffixTrie::slot_of(uint32_t parent, uint32_t token) const {
  const size_t mask = edges_.size() - 1;
  size_t slot = static_cast<size_t>(mixed(parent, token)) & mask;
  while (edges_[slot].child != kNone && (edges_[slot].parent != parent || edges_[slot].token != token)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

uint32_t SuffixTrie::child_of(uint32_t node, uint32_t token) const {
  return edges_[slot_of(node, token)].child;
}

void SuffixTrie::put_edge(uint32_t parent, uint32_t token, uint32_t child) {
  if (2 * (used_edges_ + 1) > edges_.size()) {
    std::vector<Edge> old(edges_.size() * 2);
    old.swap(edges_);
    for (const Edge& edge : old) {
      if (edge.child != kNone) edges_[slot_of(edge.parent, edge.token)] = edge;
    }
  }
  edges_[slot_of(parent, token)] = {parent, token, child};
  ++used_edges_;
}

void SuffixTrie::drop_edge(uint32_t parent, uint32_t token) {
  // The entries behind it that would no longer be found move up.
  const size_t mask = edges_.size() - 1;
  size_t hole = slot_of(parent, token);
  for (size_t slot = (hole + 1) & mask; edges_[slot].child != kNone; slot = (slot + 1) & mask) {
    const size_t home = static_cast<size_t>(mixed(edges_[slot].parent, edges_[slot].token)) & mask;
    if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
    edges_[hole] = edges_[slot];
    hole = slot;
  }
  edges_[hole] = {};
  --used_edges_;
}

namespace {

constexpr double kTie = 1e-6;  // between scores

}  // namespace

bool is_better_or_equal(const SuffixDraft& first, const SuffixDraft& second) {
  return first.score >= second.score - kTie;
}

/// Whether the other one is taken first.
bool SuffixSearch::Prospect::operator<(const Prospect& other) const {
  if (p != other.p) return p < other.p;
  if (depth != other.depth) return depth > other.depth;
  if (parent != other.parent) return parent > other.parent;
  return rank > other.rank;
}

void SuffixSearch::draft(const SuffixTrie& trie, std::span<const uint32_t> context, const SuffixSettings& settings,
                         SuffixDraft& draft) {
  draft.clear();
  find_matches(trie, context.last(std::min<size_t>(context.size(), trie.max_depth())));
  for (size_t match = matches_.size(); match > 0; --match) {
    const double nodes = std::floor(settings.factor * static_cast<double>(match) + settings.offset + 1e-6);
    const double budget = std::clamp(nodes, 0.0, 1.0 * settings.most_nodes);
    if (budget <= draft.score) continue;  // no node counts for more than 1
    tried_.clear();
    tried_.match = static_cast<uint32_t>(match);
    grow(trie, matches_[match - 1], static_cast<uint32_t>(budget), settings, tried_);
    if (!is_better_or_equal(draft, tried_)) std::swap(draft, tried_);
  }
}

/// As far as the ends of the context do stand in the trie.
void SuffixSearch::find_matches(const SuffixTrie& trie, std::span<const uint32_t> context) {
  matches_.clear();
  while (matches_.size() + 1 < context.size()) {
    const auto length = static_cast<uint32_t>(matches_.size() + 1);
    SuffixTrie::Place place;  // of nothing
    if (length <= trie.own_end()) {
      place = trie.end_of_text(length);
    } else if (!std::ranges::all_of(context.last(length), [&](uint32_t token) { return trie.follow(place, token); })) {
      return;
    }
    matches_.push_back(place);
  }
}

/// The draft behind one match, best first.
void SuffixSearch::grow(const SuffixTrie& trie, SuffixTrie::Place match, uint32_t budget,
                        const SuffixSettings& settings, SuffixDraft& draft) {
  draft.places = trie.count(match);
  const auto push_children = [&](SuffixTrie::Place place, uint32_t parent, uint32_t depth) {
    children_.clear();
    trie.children(place, children_);
    uint32_t followed = 0;
    for (const SuffixTrie::Child& child : children_) followed += child.count;
    const size_t wanted = settings.tree ? children_.size() : std::min<size_t>(children_.size(), 1);
    for (size_t rank = 0; rank < wanted; ++rank) {
      const SuffixTrie::Child& child = children_[rank];
      // The product of the conditional probabilities along the path, without their rounding.
      const double p = 1.0 * child.count / draft.places;
      if (p < settings.least_p) break;  // so are the rarer ones behind it
      frontier_.push_back(
          {p, child.token, parent, depth + 1, static_cast<uint32_t>(rank), child.place, {child.count, followed}});
      std::push_heap(frontier_.begin(), frontier_.end());
    }
  };
  frontier_.clear();
  push_children(match, 0, 0);
  while (!frontier_.empty() && draft.nodes.size() < budget) {
    std::pop_heap(frontier_.begin(), frontier_.end());
    const Prospect best = frontier_.back();
    frontier_.pop_back();
    draft.nodes.push_back({best.token, best.parent, best.p, best.went_on});
    draft.score += best.p;
    push_children(best.place, static_cast<uint32_t>(draft.nodes.size()), best.depth);
  }
}

namespace {

// The controller verifies as much of a draft as pays; a match of 16 tokens brings all of these.
constexpr SuffixSettings kTextSettings = {.most_nodes = TextDrafter::kMostNodes, .factor = 2};

}  // namespace

TextDrafter::TextDrafter(bool own, const SuffixTrie* earlier) : own_(own), earlier_(earlier), trie_(kDepth) {
  trie_.begin_text();
}

void TextDrafter::read(std::span<const uint32_t> text) {
  if (text.size() < read_) {
    trie_.clear();
    trie_.begin_text();
    read_ = 0;
  }
  if (own_) trie_.append(text.subspan(read_));
  read_ = text.size();
  const std::span<const uint32_t> end = text.last(std::min<size_t>(text.size(), kDepth));
  end_.assign(end.begin(), end.end());
}

const FreeDraft& TextDrafter::draft(uint32_t depths) {
  found_.clear();
  if (own_) search_.draft(trie_, end_, kTextSettings, found_);
  draft_.earlier = false;
  if (earlier_ != nullptr) {
    search_.draft(*earlier_, end_, kTextSettings, found_earlier_);
    draft_.earlier = !is_better_or_equal(found_, found_earlier_);
    if (draft_.earlier) std::swap(found_, found_earlier_);
  }
  draft_.nodes.clear();
  draft_.match = draft_.depth = 0;
  // One of the places is the end of the text, which nothing stands behind.
  const double continued = !draft_.earlier && found_.places > 1 ? (found_.places - 1.0) / found_.places : 1;
  kept_.assign(1, {.p = continued});
  for (const SuffixNode& node : found_.nodes) {
    const Kept above = kept_[node.parent];
    if (above.depth == depths) {  // and nothing below it either
      kept_.push_back({.depth = depths});
      continue;
    }
    draft_.nodes.push_back({above.node, node.token, std::min(1.0, node.p / above.p), node.went_on});
    kept_.push_back({static_cast<uint32_t>(draft_.nodes.size()) - 1, above.depth + 1, node.p});
    draft_.depth = std::max(draft_.depth, above.depth + 1);
  }
  if (!draft_.empty()) draft_.match = found_.match;
  return draft_;
}

}  // namespace canopy
