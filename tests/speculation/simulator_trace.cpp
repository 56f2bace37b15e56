#include "tests/speculation/simulator_trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace canopy::test {
namespace {

constexpr uint32_t text_vocab = 1000;  // tokens of the text; wrong candidates have larger ids

/// Log-odds that the first candidate is right at depth 1, and how much each further depth takes off.
struct Level {
  double first;
  double per_depth;
};

Level level_of(Ease ease) {
  switch (ease) {
    case Ease::easy: return {2.0, 0.06};   // 0.88: chains of 16 accept some 5
    case Ease::usual: return {0.5, 0.06};  // 0.62: some 1.5
    case Ease::hard: return {-1.4, 0.05};  // 0.20: 0.3
  }
  return {};
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

using Ranks = std::array<double, DraftTable::listed>;

/// How the candidates after the first share the remaining probability, falling with the rank as for words. Entry 0 is
/// not used.
struct Tail {
  Ranks share = {}, log_share = {};
  double largest = 0;

  Tail() {
    double sum = 0;
    for (uint32_t r = 1; r < DraftTable::listed; ++r) sum += share[r] = std::pow(r, -1.2);
    for (uint32_t r = 1; r < DraftTable::listed; ++r) {
      share[r] /= sum;
      log_share[r] = std::log(share[r]);
    }
    largest = share[1];
  }
};
const Tail tail;

/// The probability of all other listed candidates if the first has `top`, limited so that the second has at most as
/// much as the first.
double rest_of(double top) {
  constexpr double listed_share = 0.97;
  return std::min((1 - top) * listed_share, 0.98 * top / tail.largest);
}

/// The rank whose share of the probability contains `left`, which is uniform in [0, 1]; `listed` for none.
uint32_t rank_at(double left, double top) {
  if (left < top) return 0;
  left = (left - top) / rest_of(top);
  uint32_t rank = 1;
  while (rank < DraftTable::listed && left >= tail.share[rank]) left -= tail.share[rank++];
  return rank;
}

}  // namespace

DraftTable::DraftTable(std::span<const uint32_t> text, uint32_t positions, Ease ease, const Honesty& honesty,
                       unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const Level level = level_of(ease);
  // A token that is hard is hard for every draft that reaches it.
  std::vector<double> tokens_ease(text.size());
  for (double& each : tokens_ease) each = normal(random);

  const size_t rows = size_t{positions} * depths;
  tokens_.resize(rows * listed);
  logits_.resize(rows * listed);
  log_sums_.resize(rows);
  for (uint32_t position = 0; position < positions; ++position) {
    const double known = 0.5 * normal(random);  // part of this draft's difficulty that the drafter's probabilities show
    const double hidden = 0.4 * normal(random);  // part that they do not show
    for (uint32_t d = 0; d < depths; ++d) {
      const double base = level.first - level.per_depth * d + 0.8 * tokens_ease[position + d + 1] + known;
      const double top = logistic(base);
      const double log_rest = std::log(rest_of(top));
      const uint32_t true_rank = rank_at(uniform(random), logistic(base + hidden));

      const size_t row = size_t{position} * depths + d;
      const double sharpening = honesty.at_first + (honesty.at_last - honesty.at_first) * d / (depths - 1);
      double sum = 0;
      for (uint32_t r = 0; r < listed; ++r) {
        const double logit = sharpening * (r == 0 ? std::log(top) : tail.log_share[r] + log_rest);
        tokens_[row * listed + r] = r == true_rank ? text[position + d + 1] : text_vocab + r;
        logits_[row * listed + r] = static_cast<float>(logit);
        if (sharpening != 1) sum += std::exp(logit);
      }
      const double unlisted = std::max(0.0, 1 - top - rest_of(top));
      log_sums_[row] = sharpening == 1 ? 0 : static_cast<float>(std::log(sum + std::pow(unlisted, sharpening)));
    }
  }
}

std::vector<DepthCandidates> DraftTable::at(uint32_t position, uint32_t count) const {
  std::vector<DepthCandidates> result;
  for (uint32_t d = 0; d < std::min(count, depths); ++d) {
    const size_t row = size_t{position} * depths + d;
    result.push_back({std::span(tokens_).subspan(row * listed, listed),
                      std::span(logits_).subspan(row * listed, listed), log_sums_[row]});
  }
  return result;
}

Trace::Trace(const TraceSpec& spec, uint32_t tokens, unsigned seed) : spec_(spec), tokens_(tokens) {
  std::mt19937 random(seed * 7919 + 1);
  text_.resize(tokens + DraftTable::depths + 1);
  for (uint32_t& token : text_) token = std::uniform_int_distribution<uint32_t>(0, text_vocab - 1)(random);

  bool second = false;
  uint32_t left = 0;
  for (uint32_t position = 0; position < tokens; ++position) {
    if (spec.stretch != 0 && left == 0) {
      left = std::uniform_int_distribution<uint32_t>(spec.stretch, 2 * spec.stretch)(random);
      if (position != 0) second = !second;
    }
    if (left > 0) --left;
    eases_.push_back(second ? spec.second : spec.first);
  }
  tables_.emplace_back(text_, tokens, spec.first, spec.honesty, seed * 31 + 1);
  if (spec.stretch != 0) tables_.emplace_back(text_, tokens, spec.second, spec.honesty, seed * 31 + 2);
  if (spec.sulking != 0) tables_.emplace_back(text_, tokens, Ease::hard, spec.honesty, seed * 31 + 3);
}

std::vector<DepthCandidates> Trace::draft(uint32_t position, uint32_t depths, bool sulking) const {
  if (sulking) return tables_.back().at(position, depths);
  const bool second = spec_.stretch != 0 && eases_[position] != spec_.first;
  return tables_[second ? 1 : 0].at(position, depths);
}

}  // namespace canopy::test
