#include "engine/comparison/sweep.h"

#include <algorithm>

namespace canopy {

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
