#pragma once
// The answers on one clock: which device has written how much after so many milliseconds. Pure.

#include <cstdint>
#include <vector>

#include "app/whatif/what_if_answer.h"

namespace canopy::app {

struct RacePass {
  double end_ms = 0;     // since the start
  uint32_t guessed = 0;  // tokens of the text that were guessed
  uint32_t added = 0;    // that the big model added
};

struct RaceLane {
  size_t there = 0;  // in the answer
  std::vector<RacePass> passes;
  double ms = 0;        // of all
  double plain_ms = 0;  // of the same tokens by plain decoding; 0: not known
  uint64_t tokens = 0;

  /// Tokens written after that time; those of a pass come when it ends.
  uint64_t tokens_at(double ms) const;
};

struct Race {
  std::vector<RaceLane> lanes;  // the fastest first
  double axis_ms = 0;           // where the axis ends; a slow lane may go on beyond
  double fastest_ms = 0;
  uint32_t most_tokens = 1;  // of a pass

  bool empty() const { return lanes.empty(); }
};

/// Lanes for the devices that are known.
Race race_of(const WhatIfAnswer& answer);

/// How many seconds of the clock's time pass in one of the viewer's: the fastest lane takes `seconds`.
double race_speed(const Race& race, double seconds);

}  // namespace canopy::app
