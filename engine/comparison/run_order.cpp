#include "engine/comparison/run_order.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace canopy {
namespace {

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers on every machine.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, count), but for one part in 2^32: counts are small.
  uint32_t below(uint32_t count) { return static_cast<uint32_t>(((next() >> 32) * count) >> 32); }

 private:
  uint64_t state_;
};

}  // namespace

std::vector<RunKey> run_order(const RunCounts& counts, uint64_t seed) {
  Draws draws(seed);
  std::vector<RunKey> order;
  order.reserve(counts.total());
  std::vector<uint32_t> contestants(counts.contestants);
  std::iota(contestants.begin(), contestants.end(), 0u);
  for (uint32_t repeat = 0; repeat < counts.repeats; ++repeat) {
    for (uint32_t prompt = 0; prompt < counts.prompts; ++prompt) {
      for (uint32_t left = counts.contestants; left > 1; --left)
        std::swap(contestants[left - 1], contestants[draws.below(left)]);
      for (const uint32_t contestant : contestants) order.push_back({contestant, prompt, repeat});
    }
  }
  return order;
}

std::vector<RunKey> runs_left(const std::vector<RunKey>& order, std::span<const RunKey> done) {
  const std::set<RunKey> known(done.begin(), done.end());
  std::vector<RunKey> left;
  std::ranges::copy_if(order, std::back_inserter(left), [&](const RunKey& run) { return !known.contains(run); });
  return left;
}

}  // namespace canopy
