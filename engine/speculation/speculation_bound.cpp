#include "engine/speculation/speculation_bound.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

void check(double value, const char* field) {
  if (std::isfinite(value) && value >= 0) return;
  throw bad_input("The speculation bound has " + std::string(field) + " " + std::to_string(value) +
                  "; it must be finite and not negative.");
}

}  // namespace

void validate(const BoundSettings& settings) {
  check(settings.slack, "slack");
  check(settings.rounds, "rounds");
  check(settings.trial_share, "trial_share");
  if (settings.shortest_wait == 0 || settings.shortest_wait > settings.longest_wait) {
    throw bad_input("The speculation bound has shortest_wait " + std::to_string(settings.shortest_wait) +
                    " and longest_wait " + std::to_string(settings.longest_wait) +
                    "; allowed: 1 <= shortest_wait <= longest_wait.");
  }
}

SpeculationBound::SpeculationBound(const BoundSettings& settings)
    : settings_(settings), interval_(settings.shortest_wait) {
  validate(settings);
}

void SpeculationBound::begin_reply() {
  balance_ = std::min(balance_, 0.0);
}

void SpeculationBound::decoded(double ms) {
  balance_ += settings_.slack * ms;
  elapsed_ += ms;
  since_draft_ += 1;
}

void SpeculationBound::speculated(double ms, uint32_t tokens, double ar_ms, bool trial) {
  const double gain = tokens * ar_ms - ms;
  balance_ += settings_.slack * tokens * ar_ms + gain;
  elapsed_ += ms;
  since_draft_ = 0;
  if (!trial) return;
  trials_lost_ = std::max(0.0, trials_lost_ - gain);
  adapt_interval(gain);
}

void SpeculationBound::adapt_interval(double gain_ms) {
  // After a trial that gained time the next is due at once: the gain pays for it.
  interval_ = gain_ms > 0 ? 1 : std::clamp(interval_ + interval_ / 2, settings_.shortest_wait, settings_.longest_wait);
}

double SpeculationBound::longest_allowed(double ar_ms, double round_ms) const {
  return balance_ + (1 + settings_.slack) * ar_ms + settings_.rounds * round_ms;
}

void SpeculationBound::archive(StateArchive& archive) {
  for (double* value : {&balance_, &elapsed_, &trials_lost_}) archive.number(*value);
  archive.whole(interval_);
  archive.whole(since_draft_);
}

bool SpeculationBound::may_try(double cost_ms, double part) const {
  return wait() == 0 && trials_lost_ + cost_ms <= part * settings_.trial_share * elapsed_;
}

}  // namespace canopy
