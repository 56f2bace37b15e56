#include "engine/speculation/sampling_settings.h"

#include <cmath>
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

}  // namespace canopy
