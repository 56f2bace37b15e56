#include "engine/bench/sweep.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace canopy {

std::string WayToDecode::name() const {
  std::string name(to_string(mode));
  if (budget > 0) name += " " + std::to_string(budget);
  if (sources != kUsualSources) name += " (" + list_of(sources) + ")";
  return name;
}

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

void TimeLeft::add(uint32_t contestant, double seconds) {
  seconds_.at(contestant) += seconds;
  ++runs_.at(contestant);
}

std::optional<double> TimeLeft::estimate(std::span<const RunKey> left) const {
  const auto runs = std::accumulate(runs_.begin(), runs_.end(), uint64_t{0});
  if (runs == 0) return std::nullopt;
  const double mean = std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / static_cast<double>(runs);
  double total = 0;
  for (const RunKey& run : left) {
    const uint64_t own = runs_.at(run.contestant);
    total += own > 0 ? seconds_[run.contestant] / static_cast<double>(own) : mean;
  }
  return total;
}

double MeasuredRun::tokens_per_second() const {
  return tokens > 1 && decode_ms > 0 ? 1000.0 * (tokens - 1) / decode_ms : 0;
}

RunCounts Sweep::counts() const {
  return {static_cast<uint32_t>(contestants.size()), static_cast<uint32_t>(prompts.size()), settings.repeats};
}

std::string Sweep::name_of(uint32_t contestant) const {
  const SweepContestant& column = contestants.at(contestant);
  const SweepSubject& subject = subjects.at(column.subject);
  const auto differs = [&](const auto field) {
    return std::ranges::any_of(subjects, [&](const SweepSubject& other) { return other.*field != subject.*field; });
  };
  std::string name = subject.is_server() ? "server" : column.way.name();
  if (differs(&SweepSubject::model)) name += ", " + subject.model;
  if (!subject.is_server() && differs(&SweepSubject::drafter) && !subject.drafter.empty())
    name += " with " + subject.drafter;
  if (differs(&SweepSubject::device)) name += (subject.is_server() ? " at " : " on ") + subject.device;
  return name;
}

std::optional<uint32_t> Sweep::plain_of(uint32_t contestant) const {
  for (uint32_t i = 0; i < contestants.size(); ++i) {
    if (contestants[i].way.mode == DecodeMode::ar && contestants[i].subject == contestants.at(contestant).subject)
      return i;
  }
  return std::nullopt;
}

bool Sweep::must_agree(uint32_t a, uint32_t b) const {
  const SweepSubject &x = subjects.at(contestants.at(a).subject), &y = subjects.at(contestants.at(b).subject);
  if (x.is_server() || y.is_server()) return a == b;
  return x.target == y.target && x.device == y.device && x.driver == y.driver;
}

std::string kernel_family(const std::string& kernels) {
  return kernels.substr(0, kernels.find(';'));
}

std::optional<uint32_t> first_difference(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  if (in_a == a.end() && in_b == b.end()) return std::nullopt;
  return static_cast<uint32_t>(in_a - a.begin());
}

}  // namespace canopy
