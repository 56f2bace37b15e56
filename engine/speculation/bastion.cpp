#include "engine/speculation/bastion.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/error.h"

namespace canopy {

void validate(const PaperRuleSettings& settings) {
  if (settings.min_width < 1 || settings.min_width > settings.max_width) {
    throw bad_input("The paper rule's smallest width is " + std::to_string(settings.min_width) + "; 1 to " +
                    std::to_string(settings.max_width) + ", its largest width, is allowed.");
  }
  if (settings.bucket_step < 1) throw bad_input("The paper rule's bucket step is 0; at least 1 is needed.");
}

PaperRule::PaperRule(const PaperRuleSettings& settings, const PassCost& cost, uint32_t backlog, uint32_t context)
    : settings_(settings), cost_(cost), backlog_(backlog), context_(context) {
  validate(settings);
  round_ms_ = cost.round_ms(1, backlog, context);
  ms_by_width_.push_back(round_ms_);
}

TreeStep PaperRule::grow(TreeBuilder& builder) {
  while (visited_ < settings_.max_width) {
    const TreeStep step = builder.next();
    if (step == TreeStep::needs_candidates) return step;
    if (step == TreeStep::complete) break;
    const double probability = std::exp(builder.tree().nodes().back().score);
    const double next_ms = cost_.round_ms(visited_ + 1, backlog_, context_);
    // (expected + probability) / next_ms <= expected / round_ms, multiplied out as the paper does
    const bool pays = probability * round_ms_ > expected_ * (next_ms - round_ms_);
    if (!pays && visited_ >= settings_.min_width) break;
    ++visited_;
    expected_ += probability;
    round_ms_ = next_ms;
    expected_by_width_.push_back(expected_);
    ms_by_width_.push_back(round_ms_);
  }
  end(builder);
  return TreeStep::complete;
}

uint32_t PaperRule::bucket_of(uint32_t width) const {
  uint64_t bucket = settings_.min_width;
  if (width <= bucket) return width;  // fewer nodes than the floor exist: all of them
  if (settings_.buckets == PaperRuleSettings::Buckets::fixed) {
    return static_cast<uint32_t>(bucket + (width - bucket) / settings_.bucket_step * settings_.bucket_step);
  }
  while (bucket * 2 <= width) bucket *= 2;
  return static_cast<uint32_t>(bucket);
}

}  // namespace canopy
