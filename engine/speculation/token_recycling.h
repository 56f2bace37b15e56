#pragma once
// Token Recycling (arXiv 2408.08696): the target's own likeliest next tokens of every token that it has read lately, as
// a draft tree of a fixed shape. Costs no pass of any model.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/speculation/draft_source.h"

namespace canopy {

/// For each token the k tokens that the target found likeliest behind it, when it last read it.
class RecyclingTable {
 public:
  explicit RecyclingTable(uint32_t k = 8) : k_(k) {}

  uint32_t k() const { return k_; }
  /// The k likeliest tokens behind `token` in a row that was verified, rejected ones included: rows of a pass in order.
  /// Throws Error(bad_input) for another number of them.
  void learn(uint32_t token, std::span<const uint32_t> best);
  /// [k], the likeliest first; empty for a token that was never read.
  std::span<const uint32_t> after(uint32_t token) const;
  void clear() { table_.clear(), rows_.clear(); }
  size_t memory_bytes() const { return rows_.capacity() * sizeof(uint32_t) + table_.size() * 4 * sizeof(void*); }

 private:
  uint32_t k_;
  std::unordered_map<uint32_t, uint32_t> table_;  // a token's row
  std::vector<uint32_t> rows_;
};

/// Nodes of a recycled draft, at most.
inline constexpr uint32_t kMostRecycled = 32;

/// Paths by ranks, shorter ones first: [0], [1], ... [0, 0], [0, 1], ... The published shape cut to thirty nodes.
std::span<const std::vector<uint32_t>> recycling_template();

/// The tree of these paths behind the root, no deeper than `depths`: the last rank of a path says which token behind
/// the node of the ranks before it. A node of which nothing is known has no children. Each node's p is what tokens of
/// its rank usually deserve. Replaces what `draft` held.
void draft_recycled(const RecyclingTable& table, uint32_t root, std::span<const std::vector<uint32_t>> paths,
                    uint32_t depths, FreeDraft& draft);

}  // namespace canopy
