#include "engine/speculation/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/speculation/philox.h"

namespace canopy {
namespace {

// Below this, partial sorting (n log k, but almost no swaps) beats selection.
constexpr size_t few_candidates = 2048;

// One uniform number in (0, 1) for a token: 52 bits, so that both ends are exact doubles and neither 0 nor 1 occurs.
// The key is the seed; turn and position fill half of the counter, so no two draws of a seed share a block. A block
// of four words serves two neighbouring tokens.
class UniformByToken {
 public:
  UniformByToken(uint64_t seed, uint64_t turn, uint64_t position)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        position_(static_cast<uint32_t>(position)),
        turn_low_(static_cast<uint32_t>(turn)),
        turn_high_(static_cast<uint32_t>(turn >> 32)) {}

  double operator()(uint32_t token) {
    const uint32_t block = token >> 1;
    if (block != block_) {
      block_ = block;
      words_ = philox4x32({block, position_, turn_low_, turn_high_}, key_);
    }
    const size_t half = (token & 1) * 2;
    const uint64_t bits = uint64_t{words_[half]} << 20 | words_[half + 1] >> 12;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
  }

 private:
  PhiloxKey key_;
  uint32_t position_, turn_low_, turn_high_;
  uint32_t block_ = std::numeric_limits<uint32_t>::max();  // no token is that high: its half would need 33 bits
  PhiloxCounter words_ = {};
};

}  // namespace

Sampler::Sampler(SamplingSettings settings, uint32_t vocab_size)
    : settings_(std::move(settings)), vocab_size_(vocab_size) {
  validate(settings_);
  if (vocab_size_ == 0) throw bad_input("A sampler needs a vocabulary of at least one token.");
  for (const auto& [token, bias] : settings_.logit_bias) {
    if (token >= vocab_size_) {
      throw bad_input("The sampling setting logit_bias names token " + std::to_string(token) +
                      "; the vocabulary ends at " + std::to_string(vocab_size_ - 1) + ".");
    }
  }
}

uint32_t Sampler::sample(std::span<const float> logits, std::span<const uint32_t> history, uint64_t turn,
                         uint64_t position) {
  adjust(logits, history);
  const auto highest = std::max_element(adjusted_.begin(), adjusted_.end());  // the first of equal ones
  if (*highest == -std::numeric_limits<float>::infinity()) {
    throw bad_input("Every token is banned: all " + std::to_string(vocab_size_) + " logits are -inf.");
  }
  if (settings_.temperature == 0.0f) return static_cast<uint32_t>(highest - adjusted_.begin());
  if (position > std::numeric_limits<uint32_t>::max()) {
    throw bad_input("The position in the reply is " + std::to_string(position) + "; it must be below 2^32.");
  }
  collect(*highest);
  keep_top_k();
  keep_top_p();
  keep_min_p();
  return draw(turn, position);
}

void Sampler::adjust(std::span<const float> logits, std::span<const uint32_t> history) {
  if (logits.size() != vocab_size_) {
    throw bad_input("The sampler was given " + std::to_string(logits.size()) + " logits; the vocabulary has " +
                    std::to_string(vocab_size_) + " tokens.");
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto bad = std::find_if(logits.begin(), logits.end(), [](float logit) { return !(logit < infinity); });
  if (bad != logits.end()) {
    throw bad_input("The logit of token " + std::to_string(bad - logits.begin()) + " is " + std::to_string(*bad) +
                    "; the model's output is broken (its file may be damaged).");
  }
  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : settings_.logit_bias) adjusted_[token] += bias;
  const bool has_penalty =
      settings_.repetition_penalty != 1.0f || settings_.presence_penalty != 0.0f || settings_.frequency_penalty != 0.0f;
  if (has_penalty) apply_penalties(history);
}

// Repetition as in CTRL (Keskar et al. 2019, section 4.1), which scales towards "less likely" on both sides of zero;
// presence and frequency as in OpenAI's interface.
void Sampler::apply_penalties(std::span<const uint32_t> history) {
  counts_.resize(vocab_size_);
  for (const uint32_t token : history) {
    if (token < vocab_size_) ++counts_[token];
  }
  for (const uint32_t token : history) {
    if (token >= vocab_size_ || counts_[token] == 0) continue;
    float& logit = adjusted_[token];
    logit = logit > 0 ? logit / settings_.repetition_penalty : logit * settings_.repetition_penalty;
    logit -= settings_.presence_penalty + settings_.frequency_penalty * static_cast<float>(counts_[token]);
    counts_[token] = 0;  // once for each token, and the counts are clean for the next call
  }
}

void Sampler::collect(float highest) {
  const double scale = 1.0 / settings_.temperature;
  candidates_.clear();
  candidates_.reserve(vocab_size_);
  for (uint32_t id = 0; id < vocab_size_; ++id) {
    if (adjusted_[id] == -std::numeric_limits<float>::infinity()) continue;
    const double score = (static_cast<double>(adjusted_[id]) - highest) * scale;
    candidates_.push_back({score, 0.0, id});
  }
}

namespace {
// More probable first; of equal ones the lower id.
const auto better = [](const auto& a, const auto& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; };
const auto lower_id = [](const auto& a, const auto& b) { return a.id < b.id; };
}  // namespace

void Sampler::keep_top_k() {
  const size_t k = settings_.top_k;
  if (k == 0 || k >= candidates_.size()) return;
  const auto end = candidates_.begin() + static_cast<ptrdiff_t>(k);
  if (k <= few_candidates) {
    std::partial_sort(candidates_.begin(), end, candidates_.end(), better);
  } else {
    std::nth_element(candidates_.begin(), end, candidates_.end(), better);
  }
  candidates_.erase(end, candidates_.end());
  std::sort(candidates_.begin(), candidates_.end(), lower_id);  // sums below must not depend on how k was selected
}

// Keeps the fewest most probable tokens whose probabilities reach top_p.
void Sampler::keep_top_p() {
  if (settings_.top_p >= 1.0f) return;
  double total = 0;
  for (Candidate& candidate : candidates_) total += candidate.weight = std::exp(candidate.score);
  const double wanted = static_cast<double>(settings_.top_p) * total;
  // All tokens lighter than this together weigh less than what may be left out, so only the others need sorting. A
  // little slack keeps the rounding of the sums from mattering.
  const double light = 0.5 * (total - wanted) / static_cast<double>(candidates_.size());
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < light; });
  std::sort(candidates_.begin(), candidates_.end(), better);
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && sum < wanted) sum += candidates_[kept++].weight;
  candidates_.resize(std::max<size_t>(kept, 1));
  std::sort(candidates_.begin(), candidates_.end(), lower_id);  // neighbours share a block of random words
}

// Keeps the tokens at least min_p times as probable as the best; its score is 0.
void Sampler::keep_min_p() {
  if (settings_.min_p == 0.0f) return;
  const double lowest = std::log(static_cast<double>(settings_.min_p));
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.score < lowest; });
}

// argmax(log p + G), G = -log(E) with E = -log(1 - u) exponential, is argmin(E / p): the earliest of exponential
// clocks that tick at rate p. As E >= u, most tokens lose before a logarithm is taken.
uint32_t Sampler::draw(uint64_t turn, uint64_t position) const {
  UniformByToken uniform(settings_.seed, turn, position);
  // A start far below the winner only costs time; the most probable token is a good one.
  const auto time_of = [&](const Candidate& candidate, double u) {
    return -std::log1p(-u) * std::exp(-candidate.score);
  };
  const auto top = std::min_element(candidates_.begin(), candidates_.end(), better);
  uint32_t winner = top->id;
  double earliest = time_of(*top, uniform(top->id));
  double lowest_score = std::log(0x1p-53 / earliest);  // no token below can still win: its E is at least 2^-53
  for (const Candidate& candidate : candidates_) {
    if (candidate.score < lowest_score) continue;
    const double u = uniform(candidate.id);
    if (candidate.id == winner || u > earliest * std::exp(candidate.score)) continue;
    const double time = time_of(candidate, u);
    if (time < earliest || (time == earliest && candidate.id < winner)) {
      winner = candidate.id;
      earliest = time;
      lowest_score = std::log(0x1p-53 / earliest);
    }
  }
  return winner;
}

}  // namespace canopy
