#include "app/charts/statistics_trail.h"

#include <algorithm>

namespace canopy::app {

void TrailPoint::add(const RoundRecord* record) {
  // A record without its tree would count as one whose draft was refused.
  if (record == nullptr || (record->shape != DecodeMode::ar && record->nodes.empty())) {
    ++missing;
    return;
  }
  rounds.add(*record);
  oracle.add(*record);
  reliability.add(*record);
}

const TrailPoint& StatisticsTrail::up_to(const std::shared_ptr<RoundLog>& log, size_t round, size_t most) {
  const bool exists = log && round < log->rounds();
  size_t first = 0;
  if (exists) first = log->replies()[log->summary(round).reply].first_round;
  if (log != log_ || first != first_ || kept_.empty()) start(log, first);
  done_ = true;
  if (!exists) {
    start(log, 0);
    return answer_;
  }
  advance(round - first_ + 1, most);
  return answer_;
}

void StatisticsTrail::start(const std::shared_ptr<RoundLog>& log, size_t first) {
  log_ = log;
  first_ = first;
  kept_.assign(1, {});
  answer_ = {};
  counted_ = 0;
}

void StatisticsTrail::advance(size_t rounds, size_t most) {
  const size_t kept = std::min(kept_.size() - 1, rounds / kStride);
  // Backwards, or far ahead: from the nearest copy.
  if (rounds < counted_ || kept * kStride > counted_) {
    answer_ = kept_[kept];
    counted_ = kept * kStride;
  }
  for (size_t read = 0; counted_ < rounds; ++read) {
    if (read >= most) {
      done_ = false;
      return;
    }
    answer_.add(log_->round(first_ + counted_).get());
    ++reads_;
    ++counted_;
    if (counted_ == kept_.size() * kStride) kept_.push_back(answer_);
  }
}

}  // namespace canopy::app
