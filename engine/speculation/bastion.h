#pragma once
// BASTION's rule for the size of a tree, kept to compare with: grow along the best-first order while a node pays for
// itself, then round down to a bucket. On devices whose cost is not convex it stops before a cliff that it should
// cross, so it is not the default.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/pass_cost.h"
#include "engine/speculation/tree_builder.h"

namespace canopy {

struct PaperRuleSettings {
  enum class Buckets {
    fixed,     // widths min_width, min_width + bucket_step, ...
    doubling,  // widths min_width, 2 min_width, 4 min_width, ...
  };

  uint32_t min_width = 32;  // the rule does not stop before
  uint32_t bucket_step = 32;
  Buckets buckets = Buckets::fixed;
  uint32_t max_width = 512;
};

/// Throws Error(bad_input) naming the field unless 1 <= min_width <= max_width and bucket_step >= 1.
void validate(const PaperRuleSettings& settings);

/// Candidates of a depth that the rule looks at: begin the TreeBuilder with that many available, or the vocabulary.
constexpr uint32_t paper_candidates = 128;

/// Decides the width of one tree, which TreeBuilder::begin() has started:
///
///   builder.begin(root, depths, std::min(paper_candidates, vocab));
///   PaperRule rule(settings, cost, backlog, context);
///   while (rule.grow(builder) == TreeStep::needs_candidates) builder.extend(...);
///   // builder.tree() is what to verify
class PaperRule {
 public:
  /// `cost` must outlive the rule. Throws as validate().
  PaperRule(const PaperRuleSettings& settings, const PassCost& cost, uint32_t backlog, uint32_t context);

  /// Adds nodes until the next one does not raise the expected tokens per second (but never before min_width), the
  /// widest tree is reached or no node is left; then cuts the tree to its bucket and returns complete. Returns
  /// needs_candidates when the builder does: extend it and call again.
  TreeStep grow(TreeBuilder& builder);
  /// After needs_candidates, where there are no more: cuts the tree as far as it was built.
  void end(TreeBuilder& builder) const { builder.cut(bucket_of(visited_)); }

  /// Nodes taken before rounding down, root included.
  uint32_t visited() const { return visited_; }
  /// Of every width visited, from width 1: expected emitted tokens, the sum of its paths' probabilities with 1 for the
  /// root, and the predicted time of its round; [visited].
  std::span<const double> expected_by_width() const { return expected_by_width_; }
  std::span<const double> ms_by_width() const { return ms_by_width_; }

 private:
  uint32_t bucket_of(uint32_t width) const;

  PaperRuleSettings settings_;
  const PassCost& cost_;
  uint32_t backlog_;
  uint32_t context_;
  uint32_t visited_ = 1;
  double expected_ = 1;
  double round_ms_ = 0;  // of a round of visited_ rows
  std::vector<double> expected_by_width_ = {1}, ms_by_width_;
};

}  // namespace canopy
