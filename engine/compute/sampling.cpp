#include "engine/compute/sampling.h"

#include <algorithm>
#include <limits>

namespace canopy {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Below this, partial sorting (n log k, but almost no swaps) beats selection.
constexpr size_t few_candidates = 2048;

// Distances fall into buckets of 1/16 nat; the last one has the farthest alone.
constexpr uint32_t bucket_shift = 20;
constexpr size_t buckets = (kFarthest >> bucket_shift) + 1;

// More probable first; of equal ones the lower id.
const auto better = [](const auto& a, const auto& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; };
const auto lower_id = [](const auto& a, const auto& b) { return a.id < b.id; };

// One number for each token. The key is the seed; turn and position fill the rest of the counter, so no two draws of a
// seed share a block. A block of four words serves two neighbouring tokens.
class UniformByToken {
 public:
  explicit UniformByToken(const SamplingWords& words) : words_(words) {}

  Uniform of(uint32_t token) {
    if (const uint32_t block = token >> 1; block != block_) {
      block_ = block;
      random_ = philox4x32({block, words_.position, words_.turn[0], words_.turn[1]}, {words_.seed[0], words_.seed[1]});
    }
    const size_t half = (token & 1) * 2;
    return uniform_of(random_[half], random_[half + 1]);
  }

 private:
  const SamplingWords& words_;
  uint32_t block_ = std::numeric_limits<uint32_t>::max();  // none: blocks end at 2^31
  PhiloxCounter random_ = {};
};

}  // namespace

uint32_t RowSampler::draw(std::span<const float> logits, const SamplingWords& words,
                          std::span<const TokenAdjustment> adjustments) {
  words_ = words;
  adjusted_.resize(logits.size());
  std::ranges::transform(logits, adjusted_.begin(), [](float logit) { return settled(logit); });
  for (const auto& [token, count, bias] : adjustments) {
    adjusted_[token] = adjusted_logit(adjusted_[token], bias, count, words);
  }
  // NaN fails the condition.
  if (!std::ranges::all_of(adjusted_, [](float logit) { return logit < infinity; })) return kNoToken;
  const auto highest = std::max_element(adjusted_.begin(), adjusted_.end());  // the first of equal ones
  if (highest == adjusted_.end() || *highest == -infinity) return kNoToken;
  if (words.inverse_temperature == 0) return static_cast<uint32_t>(highest - adjusted_.begin());
  highest_ = *highest;
  candidates_.clear();
  candidates_.reserve(adjusted_.size());
  for (uint32_t id = 0; id < adjusted_.size(); ++id) {
    if (adjusted_[id] != -infinity) candidates_.push_back({adjusted_[id], id});
  }
  keep_top_k();
  keep_top_p();
  return draw_one();
}

double RowSampler::lead(uint32_t a, uint32_t b) const {
  if (words_.inverse_temperature == 0) return double{adjusted_[a]} - double{adjusted_[b]};
  UniformByToken uniform(words_);
  const auto value = [&](uint32_t token) {
    const double noise = static_cast<double>(gumbel_noise(uniform.of(token))) / kNat;
    return (double{adjusted_[token]} - double{highest_}) * double{words_.inverse_temperature} + noise;
  };
  return value(a) - value(b);
}

uint32_t RowSampler::distance_of(const Candidate& candidate) const {
  return distance(highest_, candidate.logit, words_.inverse_temperature);
}

void RowSampler::keep_top_k() {
  const size_t k = words_.top_k;
  if (k == 0 || k >= candidates_.size()) return;
  const auto end = candidates_.begin() + static_cast<ptrdiff_t>(k);
  if (k <= few_candidates) {
    std::partial_sort(candidates_.begin(), end, candidates_.end(), better);
  } else {
    std::nth_element(candidates_.begin(), end, candidates_.end(), better);
  }
  candidates_.erase(end, candidates_.end());
  std::sort(candidates_.begin(), candidates_.end(), lower_id);  // neighbours share random words
}

// Weights are summed by bucket of distance, so only the bucket in which the sum gets there needs sorting.
void RowSampler::keep_top_p() {
  if (words_.top_p == 0) return;
  std::array<uint64_t, buckets> weights = {};
  uint64_t total = 0;
  for (const Candidate& candidate : candidates_) {
    const uint32_t far = distance_of(candidate);
    const uint32_t weight = weight_at(far);
    weights[far >> bucket_shift] += weight;
    total += weight;
  }
  const uint64_t wanted = share_of(total, words_.top_p);
  uint64_t sum = 0;
  uint32_t last = 0;
  while (last + 1 < buckets && sum + weights[last] < wanted) sum += weights[last++];
  std::vector<Candidate> edge;
  for (const Candidate& candidate : candidates_) {
    if (distance_of(candidate) >> bucket_shift == last) edge.push_back(candidate);
  }
  std::sort(edge.begin(), edge.end(), better);
  size_t kept = 0;
  while (kept < edge.size() && sum < wanted) sum += weight_at(distance_of(edge[kept++]));
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    const uint32_t bucket = distance_of(candidate) >> bucket_shift;
    return bucket > last || (bucket == last && (kept == 0 || better(edge[kept - 1], candidate)));
  });
}

// The most probable token first, for its value is a mark that few others can reach; the leading bit of their random
// number is enough to see that.
uint32_t RowSampler::draw_one() const {
  UniformByToken uniform(words_);
  const auto top = std::ranges::find(candidates_, highest_, &Candidate::logit);
  uint32_t winner = top->id;
  int32_t most = gumbel_noise(uniform.of(top->id));
  for (const Candidate& candidate : candidates_) {
    const uint32_t far = distance_of(candidate);
    if (far > words_.farthest) continue;
    const auto behind = static_cast<int32_t>(far);
    if (noise_at_most(1) - behind < most) continue;
    const Uniform u = uniform.of(candidate.id);
    if (noise_at_most(bit_count(u)) - behind < most || candidate.id == top->id) continue;
    const int32_t value = gumbel_noise(u) - behind;
    if (value > most || (value == most && candidate.id < winner)) {
      winner = candidate.id;
      most = value;
    }
  }
  return winner;
}

}  // namespace canopy
