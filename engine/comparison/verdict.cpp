#include "engine/comparison/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

namespace canopy {
namespace {

std::string with_digits(double value, int digits) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

Agreement agreement_of(const Sweep& sweep) {
  Agreement agreement = sweep.runs.empty() ? Agreement::unknown : Agreement::same;
  for (const MeasuredRun& run : sweep.runs) {
    if (!run.differs_at) continue;
    if (sweep.must_agree(run.key.contestant, sweep.baseline)) return Agreement::must_not;
    agreement = Agreement::may;
  }
  return agreement;
}

std::string text_words(Agreement agreement, const Sweep& sweep, uint32_t contestant) {
  if (agreement == Agreement::same) return "same text";
  const bool differs = std::ranges::any_of(sweep.runs, [&](const MeasuredRun& run) {
    return run.key.contestant == contestant && run.differs_at.has_value();
  });
  if (agreement == Agreement::must_not) return differs ? "but another text" : "but not all texts are the same";
  return differs ? "another text, as it may be" : "same text";
}

/// What must be said of a ratio that may be 1.
std::string doubt(const Ratio& ratio) {
  if (!ratio.has_error() || ratio.differs_from_one()) return {};
  return ", which " + std::to_string(ratio.pairs) + " repeats cannot tell from no difference";
}

}  // namespace

std::string ratio_figures(const Ratio& ratio) {
  if (!ratio.has_error()) return with_digits(ratio.value, 2);
  // One digit of the error, two where it begins with 1.
  int digits = 2;
  if (ratio.error > 0) {
    const double exponent = std::floor(std::log10(ratio.error));
    const bool begins_with_one = ratio.error / std::pow(10.0, exponent) < 1.95;
    digits = std::clamp(static_cast<int>(-exponent) + (begins_with_one ? 1 : 0), 1, 4);
  }
  return with_digits(ratio.value, digits) + " \u00b1 " + with_digits(ratio.error, digits);
}

Verdict verdict_of(const Sweep& sweep) {
  Verdict verdict;
  verdict.agreement = agreement_of(sweep);
  std::vector<SweepCell> cells = summarize(sweep, sweep.baseline);
  std::erase_if(cells, [](const SweepCell& cell) { return cell.category != kAllCategories || cell.replies == 0; });
  if (cells.size() != sweep.contestants.size() || cells.empty()) return verdict;
  const auto speed = [](const SweepCell& cell) { return cell.tokens_per_second.mean; };
  const SweepCell& best = *std::ranges::max_element(cells, {}, speed);
  verdict.fastest = best.contestant;
  const std::string base = sweep.name_of(sweep.baseline);
  if (cells.size() == 1) {
    verdict.sentence = base + " writes " + with_digits(speed(best), 1) + " tokens a second here";
    return verdict;
  }
  if (best.contestant == sweep.baseline) {
    // The strongest of the others says what speculation costs here.
    std::erase_if(cells, [&](const SweepCell& cell) { return cell.contestant == sweep.baseline; });
    const SweepCell& next = *std::ranges::max_element(cells, {}, speed);
    const std::string name = sweep.name_of(next.contestant);
    verdict.sentence = base + " is the fastest here: " + name + " is " + ratio_figures(next.times_baseline) +
                       " \u00d7 " + base + doubt(next.times_baseline) + "; " +
                       text_words(verdict.agreement, sweep, next.contestant);
    return verdict;
  }
  verdict.sentence = sweep.name_of(best.contestant) + " is " + ratio_figures(best.times_baseline) + " \u00d7 " + base +
                     " here" + doubt(best.times_baseline) + "; " +
                     text_words(verdict.agreement, sweep, best.contestant);
  return verdict;
}

}  // namespace canopy
