#include "engine/speculation/token_recycling.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "engine/base/error.h"

namespace canopy {

void RecyclingTable::learn(uint32_t token, std::span<const uint32_t> best) {
  if (best.size() != k_) {
    throw bad_input("A recycling table of " + std::to_string(k_) + " tokens a row was given " +
                    std::to_string(best.size()) + ".");
  }
  const auto [row, added] = table_.try_emplace(token, static_cast<uint32_t>(table_.size()));
  if (added) rows_.resize(rows_.size() + k_);
  std::ranges::copy(best, rows_.begin() + static_cast<std::ptrdiff_t>(size_t{row->second} * k_));
}

std::span<const uint32_t> RecyclingTable::after(uint32_t token) const {
  const auto row = table_.find(token);
  return row == table_.end() ? std::span<const uint32_t>() : std::span(rows_).subspan(size_t{row->second} * k_, k_);
}

std::span<const std::vector<uint32_t>> recycling_template() {
  static const std::vector<std::vector<uint32_t>> paths = {
      {0},       {1},          {2},          {3},          {4},          {0, 0},      {0, 1},    {0, 2},
      {0, 3},    {1, 0},       {1, 1},       {1, 2},       {2, 0},       {2, 1},      {3, 0},    {0, 0, 0},
      {0, 0, 1}, {0, 0, 2},    {0, 1, 0},    {0, 1, 1},    {0, 2, 0},    {1, 0, 0},   {1, 0, 1}, {1, 1, 0},
      {2, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}};
  return paths;
}

namespace {

/// The share of tokens of a rank that came, of those that were the k likeliest when the token before was last read:
/// where to begin from, as each depth is calibrated (DepthCalibrator).
double usual_share(uint32_t rank) {
  constexpr double shares[] = {0.35, 0.12, 0.07, 0.05, 0.035, 0.025, 0.02, 0.015};
  return shares[std::min<size_t>(rank, std::size(shares) - 1)];
}

/// The path of all ranks but the last among those before; paths.size() of a path of one rank.
size_t parent_of(std::span<const std::vector<uint32_t>> paths, size_t path) {
  const std::span<const uint32_t> above = std::span(paths[path]).first(paths[path].size() - 1);
  if (above.empty()) return paths.size();
  size_t place = 0;
  while (place < path && !std::ranges::equal(paths[place], above)) ++place;
  return place;
}

}  // namespace

void draft_recycled(const RecyclingTable& table, uint32_t root, std::span<const std::vector<uint32_t>> paths,
                    uint32_t depths, FreeDraft& draft) {
  constexpr uint32_t nowhere = UINT32_MAX - 1;
  draft.nodes.clear();
  draft.match = draft.depth = 0;
  std::array<uint32_t, kMostRecycled> places;  // in the draft, by path
  if (paths.size() > places.size())
    throw bad_input("A recycled draft has too many paths: " + std::to_string(paths.size()) + ".");
  for (size_t i = 0; i < paths.size(); ++i) {
    places[i] = nowhere;
    if (paths[i].size() > depths) continue;
    const size_t above = parent_of(paths, i);
    const uint32_t parent = above == paths.size() ? CandidateNode::root : above == i ? nowhere : places[above];
    if (parent == nowhere) continue;
    const uint32_t rank = paths[i].back();
    const std::span<const uint32_t> best =
        table.after(parent == CandidateNode::root ? root : draft.nodes[parent].token);
    if (rank >= best.size()) continue;
    places[i] = static_cast<uint32_t>(draft.nodes.size());
    draft.nodes.push_back({parent, best[rank], usual_share(rank)});
    draft.depth = std::max(draft.depth, static_cast<uint32_t>(paths[i].size()));
  }
}

}  // namespace canopy
