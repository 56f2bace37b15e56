#include "engine/speculation/token_recycling.h"

#include <algorithm>
#include <map>
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

void draft_recycled(const RecyclingTable& table, uint32_t root, std::span<const std::vector<uint32_t>> paths,
                    DraftTree& tree) {
  tree.reset(root);
  std::map<std::vector<uint32_t>, uint32_t> nodes = {{{}, 0}};
  for (const std::vector<uint32_t>& path : paths) {
    const auto parent = nodes.find({path.begin(), path.end() - 1});
    if (parent == nodes.end()) continue;
    const std::span<const uint32_t> best = table.after(tree[parent->second].token);
    if (path.back() >= best.size()) continue;
    nodes[path] = tree.add(parent->second, best[path.back()], path.back(), 0, 0);
  }
}

}  // namespace canopy
