#include "engine/speculation/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
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

// Scores fall into buckets of 1/16 nat, best first; the last one takes all below -64.
constexpr size_t score_buckets = 64 * 16 + 1;

size_t bucket_of(double score) {
  return static_cast<size_t>(std::min(-score * 16.0, static_cast<double>(score_buckets - 1)));
}

// Far above the rounding of a logarithm, so that a shortcut never drops a winner.
constexpr double slack = 1e-9;

// More probable first; of equal ones the lower id.
const auto better = [](const auto& a, const auto& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; };
const auto lower_id = [](const auto& a, const auto& b) { return a.id < b.id; };

// One uniform number in (0, 1) for each token: 52 bits, so that both ends are exact doubles and neither 0 nor 1 occurs.
// The key is the seed; turn and position fill the rest of the counter, so no two draws of a seed share a block. A block
// of four words serves two neighbouring tokens.
class UniformByToken {
 public:
  UniformByToken(uint64_t seed, uint64_t turn, uint64_t position)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        position_(static_cast<uint32_t>(position)),
        turn_low_(static_cast<uint32_t>(turn)),
        turn_high_(static_cast<uint32_t>(turn >> 32)) {}

  uint64_t bits(uint32_t token) {
    if (const uint32_t block = token >> 1; block != block_) {
      block_ = block;
      words_ = philox4x32({block, position_, turn_low_, turn_high_}, key_);
    }
    const size_t half = (token & 1) * 2;
    return uint64_t{words_[half]} << 20 | words_[half + 1] >> 12;
  }

  static double value(uint64_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-52; }

  /// A lower bound of log(value(bits)), at most log 2 below it.
  static double log_at_least(uint64_t bits) { return (static_cast<double>(std::bit_width(bits)) - 53.0) * log_2; }

  /// log_at_least of anything.
  static constexpr double least_log = -53.0 * 0.6931471805599454;

 private:
  static constexpr double log_2 = 0.6931471805599453;

  PhiloxKey key_;
  uint32_t position_, turn_low_, turn_high_;
  uint32_t block_ = std::numeric_limits<uint32_t>::max();  // none: blocks end at 2^31
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
  if (*highest == std::numeric_limits<float>::infinity()) {
    throw bad_input("The logit of token " + std::to_string(highest - adjusted_.begin()) +
                    " overflowed under bias and penalties; use a repetition_penalty nearer to 1.");
  }
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
    candidates_.push_back({score, id});
  }
}

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

// Keeps the fewest most probable tokens whose probabilities reach top_p. Weights are summed by bucket of score, so only
// the bucket in which the sum gets there needs sorting.
void Sampler::keep_top_p() {
  if (settings_.top_p >= 1.0f) return;
  std::array<double, score_buckets> weights = {};
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    const double weight = std::exp(candidate.score);
    weights[bucket_of(candidate.score)] += weight;
    total += weight;
  }
  const double wanted = static_cast<double>(settings_.top_p) * total;
  double sum = 0;
  size_t last = 0;
  while (last + 1 < score_buckets && sum + weights[last] < wanted) sum += weights[last++];
  std::vector<Candidate> edge;
  for (const Candidate& candidate : candidates_) {
    if (bucket_of(candidate.score) == last) edge.push_back(candidate);
  }
  std::sort(edge.begin(), edge.end(), better);
  size_t kept = 0;
  while (kept < edge.size() && sum < wanted) sum += std::exp(edge[kept++].score);
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    const size_t bucket = bucket_of(candidate.score);
    return bucket > last || (bucket == last && (kept == 0 || better(edge[kept - 1], candidate)));
  });
}

// Keeps the tokens at least min_p times as probable as the best; its score is 0.
void Sampler::keep_min_p() {
  if (settings_.min_p == 0.0f) return;
  const double lowest = std::log(static_cast<double>(settings_.min_p));
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.score < lowest; });
}

// argmax(log p + G), G = -log(E) with E = -log(1 - u) exponential, is argmin(E / p): the earliest of exponential
// clocks that tick at rate p. A token can win only if log E < log p + log(earliest so far); as E >= u, the leading bit
// of u is enough to see that nearly all of them cannot, before any exp or log is taken.
uint32_t Sampler::draw(uint64_t turn, uint64_t position) const {
  UniformByToken uniform(settings_.seed, turn, position);
  const auto time_of = [](const Candidate& candidate, uint64_t bits) {
    return -std::log1p(-UniformByToken::value(bits)) * std::exp(-candidate.score);
  };
  // The most probable token first, for it sets a hard mark; then all by id, a block of random words at a time.
  const auto top = std::find_if(candidates_.begin(), candidates_.end(), [](const auto& c) { return c.score == 0; });
  const Candidate* winner = &*top;
  double earliest = time_of(*top, uniform.bits(top->id));
  double mark = std::log(earliest) + slack;
  for (const Candidate& candidate : candidates_) {
    if (candidate.score + mark < UniformByToken::least_log) continue;
    const uint64_t bits = uniform.bits(candidate.id);
    if (candidate.score + mark < UniformByToken::log_at_least(bits) || &candidate == &*top) continue;
    const double time = time_of(candidate, bits);
    if (time < earliest || (time == earliest && candidate.id < winner->id)) {
      winner = &candidate;
      earliest = time;
      mark = std::log(earliest) + slack;
    }
  }
  return winner->id;
}

}  // namespace canopy
