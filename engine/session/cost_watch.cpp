#include "engine/session/cost_watch.h"

namespace canopy {

void CostWatch::begin() {
  backlog_ = drafter_.backlog();
  recordings_ = state_.recordings();
}

bool CostWatch::learn(const RoundRecord& record) {
  if (state_.recordings() != recordings_) return false;
  ObservedCost& cost = state_.cost();
  cost.observe_verify(record.width, record.context, record.ms.verify);
  if (record.ms.draft > 0) cost.observe_draft(backlog_, record.context, record.ms.draft);
  cost.observe_other(record.width, other_ms(record.ms));
  return true;
}

double other_ms(const RoundTimes& ms) {
  return ms.build + ms.walk + ms.commit + ms.other;
}

}  // namespace canopy
