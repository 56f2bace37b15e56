#include "engine/session/tree_drafter.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace canopy {

bool TreeDrafter::draft(uint32_t root, uint32_t depths, const std::stop_token& stop) {
  std::optional<Draft> draft = sequence_.draft(root, depths, stop);
  if (!draft) return false;
  root_ = root;
  draft_ = std::move(*draft);
  return true;
}

void TreeDrafter::begin(std::span<const DepthCalibration> calibration, uint32_t available) {
  depths_.clear();
  available_ = std::min(available, sequence_.drafter()->drafted_tokens());
  for (uint32_t depth = 1; depth <= draft_.depths; ++depth) depths_.push_back(candidates_at(depth));
  builder_.begin(root_, depths_, available_, calibration);
}

void TreeDrafter::grow(PaperRule& rule) {
  while (rule.grow(builder_) == TreeStep::needs_candidates) fetch_more(builder_.starved_depth());
}

bool TreeDrafter::next() {
  TreeStep step = builder_.next();
  while (step == TreeStep::needs_candidates) {
    fetch_more(builder_.starved_depth());
    step = builder_.next();
  }
  return step == TreeStep::added;
}

void TreeDrafter::build(uint32_t budget) {
  while (tree().drafted() < budget && next()) {
  }
}

DepthCandidates TreeDrafter::candidates_at(uint32_t depth) const {
  const size_t first = size_t{depth - 1} * draft_.candidates;
  return {std::span(draft_.tokens).subspan(first, draft_.candidates),
          std::span(draft_.logits).subspan(first, draft_.candidates), draft_.log_sum_exp[depth - 1]};
}

// The device sorted the first of them; their values stand, since the host may round a softcap another way.
void TreeDrafter::fetch_more(uint32_t depth) {
  const DepthCandidates known = candidates_at(depth);
  std::vector<float> logits = draft_.logits_at(depth);
  const Drafter& drafter = *sequence_.drafter();
  const auto count = std::min<size_t>(available_, size_t{builder_.candidates_at(depth)} * 4);
  std::vector<bool> is_known(drafter.config().transformer.vocab);
  for (const uint32_t token : known.tokens) is_known[token] = true;
  std::vector<uint32_t> others;  // by their places among the drafted tokens, which have the order of the ids
  for (uint32_t place = 0; place < logits.size(); ++place) {
    if (!is_known[drafter.token_at(place)]) others.push_back(place);
  }
  const auto end = others.begin() + static_cast<std::ptrdiff_t>(count - known.tokens.size());
  std::partial_sort(others.begin(), end, others.end(),
                    [&](uint32_t a, uint32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  more_tokens_.assign(known.tokens.begin(), known.tokens.end());
  more_logits_.assign(known.logits.begin(), known.logits.end());
  const float least = known.logits.back();
  for (auto place = others.begin(); place != end; ++place) {
    more_tokens_.push_back(drafter.token_at(*place));
    more_logits_.push_back(std::min(logits[*place], least));
  }
  builder_.extend(depth, {more_tokens_, more_logits_, known.log_sum_exp});
}

}  // namespace canopy
