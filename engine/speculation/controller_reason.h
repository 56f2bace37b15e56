#pragma once
// The controller's decisions in words, a sentence each, with the numbers they rest on.

#include <cstdint>
#include <string>

#include "engine/speculation/controller_choice.h"

namespace canopy::reason {

std::string no_room(const WidthLimits& limits);
std::string cannot_pay(double most, double draft_ms, double ar_ms);
std::string bound_reached(double round_ms, double balance_ms, double rounds);
std::string measuring_ar(uint32_t rounds);
std::string not_believed(double believed, double draft_ms);
std::string drafting(double speed_up, double rounds);
std::string trial(double speed_up);
std::string first_trial(double believed);
std::string waiting(double speed_up, uint32_t tokens);
std::string saving(double speed_up, double draft_ms);

/// `other` is the other objective's view: autoregressive decoding's tokens per second.
std::string chosen(DecodeMode shape, const WidthForecast& best, double ar_tokens_per_second);
std::string not_worth_verifying(const WidthForecast& plain, double verified_expected, uint32_t verified_width);

}  // namespace canopy::reason
