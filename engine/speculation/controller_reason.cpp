#include "engine/speculation/controller_reason.h"

#include <cstdio>

namespace canopy::reason {
namespace {

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string ms(double value) {
  return number(value, 1) + " ms";
}

std::string times(double speed_up) {
  return number(speed_up, 2) + "×";
}

}  // namespace

std::string no_room(const WidthLimits& limits) {
  return "Plain: no room for a draft (" + std::to_string(limits.widest()) + " rows, paths of " +
         std::to_string(limits.deepest()) + " tokens).";
}

std::string cannot_pay(double most, double draft_ms, double ar_ms) {
  return "Plain: even a draft accepted in full would run at " + times(most) + " plain decoding (draft " + ms(draft_ms) +
         ", plain round " + ms(ar_ms) + ").";
}

std::string bound_reached(double round_ms, double balance_ms, double rounds) {
  return "Plain: drafting has cost more than it brought (" + ms(-balance_ms) + " beyond the slack; " +
         number(rounds, 0) + " rounds of " + ms(round_ms) + " are the most).";
}

std::string measuring_ar(uint32_t rounds) {
  return "Plain: measured again after " + std::to_string(rounds) + " rounds with drafts.";
}

std::string not_believed(double believed, double draft_ms) {
  return "Plain: on this device even a good drafter would run at " + times(believed) +
         " plain decoding; a first draft (" + ms(draft_ms) + ") waits until its time is earned.";
}

std::string drafting(double speed_up, double rounds) {
  if (rounds < 1) return "Drafting: nothing is known about this drafter yet.";
  return "Drafting: lately " + times(speed_up) + " plain decoding.";
}

std::string trial(double speed_up) {
  return "Drafting to see whether it pays by now; lately " + times(speed_up) + " plain decoding.";
}

std::string first_trial(double believed) {
  return "Drafting to see what this drafter is worth; a good one would run at " + times(believed) + " plain decoding.";
}

std::string waiting(double speed_up, uint32_t tokens) {
  return "Plain: drafting ran at " + times(speed_up) + " plain decoding lately; tried again in " +
         std::to_string(tokens) + " tokens.";
}

std::string saving(double speed_up, double draft_ms) {
  return "Plain: drafting ran at " + times(speed_up) +
         " plain decoding lately; trials have used up their share of time (one takes " + ms(draft_ms) + ").";
}

std::string chosen(DecodeMode shape, const WidthForecast& best, double ar_tokens_per_second) {
  return std::string(shape == DecodeMode::chain ? "Chain" : "Tree") + " of " + std::to_string(best.width) +
         " rows: " + number(best.expected, 2) + " tokens expected in " + ms(best.ms) + ", " +
         number(best.tokens_per_second(), 1) + " tok/s against " + number(ar_tokens_per_second, 1) + " plain.";
}

std::string not_worth_verifying(const WidthForecast& plain, double verified_expected, uint32_t verified_width) {
  return "Plain: the draft is not worth verifying (" + number(verified_expected, 2) + " tokens expected of " +
         std::to_string(verified_width) + " rows, one of " + ms(plain.ms) + " without).";
}

}  // namespace canopy::reason
