#include "engine/speculation/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

[[noreturn]] void refuse(const std::string& field, float value, const char* allowed) {
  throw bad_input("The sampling setting " + field + " is " + std::to_string(value) + "; it must be " + allowed + ".");
}

}  // namespace

// Every condition is written so that NaN fails it.
void validate(const SamplingSettings& s) {
  if (!(s.temperature >= 0.0f && std::isfinite(s.temperature))) {
    refuse("temperature", s.temperature, "0 (greedy) or a finite positive number");
  }
  if (!(s.top_p > 0.0f && s.top_p <= 1.0f)) refuse("top_p", s.top_p, "above 0 and at most 1");
  if (!(s.min_p >= 0.0f && s.min_p < 1.0f)) refuse("min_p", s.min_p, "at least 0 and below 1");
  if (!(s.repetition_penalty > 0.0f && std::isfinite(s.repetition_penalty))) {
    refuse("repetition_penalty", s.repetition_penalty, "a finite positive number (1 is off)");
  }
  if (!(std::fabs(s.presence_penalty) <= 2.0f)) {
    refuse("presence_penalty", s.presence_penalty, "between -2 and 2");
  }
  if (!(std::fabs(s.frequency_penalty) <= 2.0f)) {
    refuse("frequency_penalty", s.frequency_penalty, "between -2 and 2");
  }
  for (const auto& [token, bias] : s.logit_bias) {
    if (!std::isfinite(bias)) refuse("logit_bias of token " + std::to_string(token), bias, "finite");
  }
}

namespace {

constexpr float largest_factor = 0x1p100f;  // of a temperature's reciprocal: no distance is finer than that

/// As far from the best as a token of `ratio` times its probability, 0 < ratio < 1.
uint32_t distance_of_ratio(float ratio) {
  int exponent = 0;
  const float mantissa = std::frexp(ratio, &exponent);  // 1/2 ... 1
  const uint32_t log2 = log2_fraction(static_cast<uint32_t>(std::ldexp(mantissa, 32)));
  // -log2(ratio) in units of 2^-24, at most 149.
  const uint32_t distance = (static_cast<uint32_t>(1 - exponent) << 24) - (log2 >> 6);
  return high_product(distance, kLn2);
}

}  // namespace

SamplingWords sampling_words(const SamplingSettings& settings, uint64_t turn, uint64_t position) {
  validate(settings);
  SamplingWords words;
  words.repetition = std::max(settings.repetition_penalty, std::numeric_limits<float>::min());
  words.inverse_repetition = std::max(1.0f / words.repetition, std::numeric_limits<float>::min());
  words.presence = settled(settings.presence_penalty);
  words.frequency = settled(settings.frequency_penalty);
  if (settings.temperature == 0.0f) return words;
  if (position > std::numeric_limits<uint32_t>::max()) {
    throw bad_input("The position in the reply is " + std::to_string(position) + "; it must be below 2^32.");
  }
  words.inverse_temperature = std::clamp(1.0f / settings.temperature, 1.0f / largest_factor, largest_factor);
  words.top_k = settings.top_k;
  if (settings.top_p < 1.0f) words.top_p = std::max(1u, static_cast<uint32_t>(settings.top_p * 0x1p32f));
  if (settings.min_p > 0.0f) words.farthest = distance_of_ratio(settings.min_p);
  words.seed[0] = static_cast<uint32_t>(settings.seed);
  words.seed[1] = static_cast<uint32_t>(settings.seed >> 32);
  words.turn[0] = static_cast<uint32_t>(turn);
  words.turn[1] = static_cast<uint32_t>(turn >> 32);
  words.position = static_cast<uint32_t>(position);
  return words;
}

TokenAdjustments::TokenAdjustments(const SamplingSettings& settings, uint32_t vocab_size)
    : vocab_size_(vocab_size),
      counts_(settings.repetition_penalty != 1.0f || settings.presence_penalty != 0.0f ||
              settings.frequency_penalty != 0.0f) {
  for (const auto& [token, bias] : settings.logit_bias) {
    if (token >= vocab_size_) {
      throw bad_input("The sampling setting logit_bias names token " + std::to_string(token) +
                      "; the vocabulary ends at " + std::to_string(vocab_size_ - 1) + ".");
    }
    const auto place = std::ranges::lower_bound(biases_, token, {}, &TokenAdjustment::token);
    if (place == biases_.end() || place->token != token) {
      biases_.insert(place, {token, 0, bias});
    } else {
      place->bias += bias;
    }
  }
  constexpr float most = std::numeric_limits<float>::max();
  for (TokenAdjustment& entry : biases_) entry.bias = settled(std::clamp(entry.bias, -most, most));
  all_ = biases_;
}

void TokenAdjustments::add(uint32_t token) {
  if (!counts_ || token >= vocab_size_) return;
  const auto place = std::ranges::lower_bound(all_, token, {}, &TokenAdjustment::token);
  if (place == all_.end() || place->token != token) {
    all_.insert(place, {token, 1, 0});
  } else {
    ++place->count;
  }
}

// Sorted at once, as inserting the tokens of a long prompt one by one takes time.
void TokenAdjustments::add(std::span<const uint32_t> tokens) {
  if (!counts_) return;
  std::vector<uint32_t> sorted(tokens.begin(), tokens.end());
  std::ranges::sort(sorted);
  std::vector<TokenAdjustment> merged;
  merged.reserve(all_.size() + sorted.size());
  auto old = all_.begin();
  for (const uint32_t token : sorted) {
    if (token >= vocab_size_) break;
    while (old != all_.end() && old->token <= token) merged.push_back(*old++);
    if (merged.empty() || merged.back().token != token) merged.push_back({token, 0, 0});
    ++merged.back().count;
  }
  merged.insert(merged.end(), old, all_.end());
  all_ = std::move(merged);
}

void TokenAdjustments::clear() {
  all_ = biases_;
}

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
