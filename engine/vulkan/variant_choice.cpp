#include "engine/vulkan/variant_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace canopy::vk {

namespace {

// A counter that goes backwards wraps around, so the time between is enormous.
bool makes_sense(const TimedRun& run) {
  return std::isfinite(run.device_us) && run.device_us > 0 && run.device_us <= 1.1 * run.host_us + 100;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

struct Candidate {
  bool runs = false;
  std::vector<double> us;
};

// Rules out those that are far behind the best.
void drop_hopeless(std::vector<Candidate>& all, double hopeless) {
  double best = std::numeric_limits<double>::max();
  for (const Candidate& one : all) {
    if (!one.us.empty()) best = std::min(best, median_of(one.us));
  }
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].us.size() >= 2 && median_of(all[i].us) > hopeless * best) all[i].runs = false;
  }
}

// One run of each, from the first on or from the last. False when the time is over or the clock tells nothing.
bool run_round(VariantTimer& timer, std::vector<Candidate>& all, bool backwards, VariantChoice& choice) {
  for (size_t at = 0; at < all.size(); ++at) {
    const size_t i = backwards ? all.size() - 1 - at : at;
    if (!all[i].runs) continue;
    if (timer.over()) return false;
    const TimedRun run = timer.run(i);
    if (!makes_sense(run)) {
      choice.problem = "its clock says " + std::to_string(run.device_us) +
                       " microseconds for a run that the host saw end after " + std::to_string(run.host_us);
      return false;
    }
    all[i].us.push_back(run.device_us);
  }
  return true;
}

}  // namespace

VariantChoice choose_variant(VariantTimer& timer, size_t count, const VariantPlan& plan) {
  VariantChoice choice;
  choice.typical_us.assign(count, 0);
  std::vector<Candidate> all(count);
  for (size_t i = 0; i < count && !timer.over(); ++i) all[i].runs = timer.prepare(i);
  if (!all[0].runs) return choice;
  const bool prepared = !timer.over();
  int rounds = 0;
  while (rounds < plan.rounds && run_round(timer, all, rounds % 2 == 1, choice)) {
    ++rounds;
    drop_hopeless(all, plan.hopeless);
  }
  if (!choice.problem.empty()) return choice;
  choice.complete = prepared && rounds == plan.rounds;
  // A single run says too little; where the first has no more, it stays.
  for (size_t i = 0; i < count; ++i) choice.typical_us[i] = median_of(all[i].us);
  if (all[0].us.size() < 2) return choice;
  double best = plan.clearly * choice.typical_us[0];
  for (size_t i = 1; i < count; ++i) {
    if (!all[i].runs || all[i].us.size() < 2 || choice.typical_us[i] > best) continue;
    best = choice.typical_us[i];
    choice.chosen = i;
  }
  return choice;
}

}  // namespace canopy::vk
