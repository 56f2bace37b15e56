#include "engine/planning/tree_drafter.h"

#include <algorithm>

namespace canopy {

bool TreeDrafter::draft(uint32_t root, uint32_t depths, const std::stop_token& stop) {
  const BlockDraft* const draft = source_.draft(root, depths, stop);
  if (draft == nullptr) return false;
  root_ = root;
  draft_ = draft;
  more_.clear();
  return true;
}

void TreeDrafter::begin(std::span<const DepthCalibration> calibration, uint32_t available) {
  depths_.clear();
  available_ = std::min(available, source_.drafted_tokens());
  for (uint32_t depth = 1; depth <= draft_->depths; ++depth) depths_.push_back(draft_->at(depth));
  builder_.begin(root_, depths_, available_, calibration);
}

void TreeDrafter::grow(PaperRule& rule) {
  while (rule.grow(builder_) == TreeStep::needs_candidates) {
    if (!fetch_more(builder_.starved_depth())) return rule.end(builder_);
  }
}

bool TreeDrafter::next() {
  TreeStep step = builder_.next();
  while (step == TreeStep::needs_candidates) {
    if (!fetch_more(builder_.starved_depth())) return false;
    step = builder_.next();
  }
  return step == TreeStep::added;
}

void TreeDrafter::build(uint32_t budget) {
  while (tree().drafted() < budget && next()) {
  }
}

bool TreeDrafter::fetch_more(uint32_t depth) {
  const uint32_t known = builder_.candidates_at(depth);
  const uint32_t count = std::min(available_, known * 4);
  auto place = std::lower_bound(more_.begin(), more_.end(), depth,
                                [](const MoreCandidates& each, uint32_t d) { return each.depth < d; });
  if (place == more_.end() || place->depth != depth) place = more_.insert(place, {.depth = depth});
  MoreCandidates& all = *place;
  // An earlier tree of this draft may have asked for more than this one has.
  if (all.tokens.size() <= known && !source_.more(depth, known, count, all.tokens, all.logits)) {
    if (all.tokens.empty()) more_.erase(place);
    return false;
  }
  const size_t used = std::min<size_t>(all.tokens.size(), available_);
  if (used <= known) return false;
  builder_.extend(depth, {std::span(all.tokens).first(used), std::span(all.logits).first(used),
                          double{draft_->log_sum_exp[depth - 1]}});
  return true;
}

std::shared_ptr<const KeptDraft> TreeDrafter::kept() const {
  return std::make_shared<const KeptDraft>(KeptDraft{*draft_, more_});
}

}  // namespace canopy
