#include "engine/speculation/sampler.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "engine/base/error.h"

namespace canopy {
namespace {

const SamplingSettings& valid(const SamplingSettings& settings, uint32_t vocab_size) {
  validate(settings);
  if (vocab_size == 0) throw bad_input("A sampler needs a vocabulary of at least one token.");
  return settings;
}

}  // namespace

Sampler::Sampler(SamplingSettings settings, uint32_t vocab_size)
    : settings_(std::move(settings)),
      vocab_size_(vocab_size),
      adjustments_(valid(settings_, vocab_size_), vocab_size_) {}

uint32_t Sampler::sample(std::span<const float> logits, std::span<const uint32_t> history, uint64_t turn,
                         uint64_t position) {
  if (logits.size() != vocab_size_) {
    throw bad_input("The sampler was given " + std::to_string(logits.size()) + " logits; the vocabulary has " +
                    std::to_string(vocab_size_) + " tokens.");
  }
  adjustments_.clear();
  adjustments_.add(history);
  const uint32_t token = rows_.draw(logits, sampling_words(settings_, turn, position), adjustments_.all());
  if (token == kNoToken) refuse(logits);
  return token;
}

/// Says why no token can be drawn.
void Sampler::refuse(std::span<const float> logits) const {
  const auto is_bad = [](float logit) { return !(logit < std::numeric_limits<float>::infinity()); };
  if (const auto bad = std::ranges::find_if(logits, is_bad); bad != logits.end()) {
    throw bad_input("The logit of token " + std::to_string(bad - logits.begin()) + " is " + std::to_string(*bad) +
                    "; the model's output is broken (its file may be damaged).");
  }
  const std::span<const float> adjusted = rows_.adjusted();
  if (const auto bad = std::ranges::find_if(adjusted, is_bad); bad != adjusted.end()) {
    throw bad_input("The logit of token " + std::to_string(bad - adjusted.begin()) +
                    " overflowed under bias and penalties; use a repetition_penalty nearer to 1.");
  }
  throw bad_input("Every token is banned: all " + std::to_string(vocab_size_) + " logits are -inf.");
}

}  // namespace canopy
