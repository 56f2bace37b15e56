#pragma once
// What Watch says of another device: the passes that What if computes for it, as far as the shown place of the text, in
// a few numbers. The computation is that of What if alone (app/run/what_if_answers.h). Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "app/whatif/what_if_answer.h"

namespace canopy::app {

struct Elsewhere {
  std::string device;               // "RTX 4090"; empty: nothing is known
  std::string detail;               // "1,008 GB/s"
  std::string from;                 // a sentence on where its times come from
  uint64_t rounds = 0;              // passes there
  double tokens = 0;                // of a pass
  double plain_tokens = 0;          // time of a pass, its guessing included, in times of a plain token there
  double ratio = 0;                 // speed over plain decoding on the same device; 0 without passes
  uint32_t least = 0, most = 0;     // guesses of its passes
  std::optional<uint32_t> guesses;  // of the pass that reads the shown place
  bool at_most = false;             // no more guesses than were recorded could be chosen
};

/// Of the passes there that begin in this reply behind at most `context` positions. reply: among those that were
/// re-run.
Elsewhere elsewhere_up_to(const WhatIfThere& there, size_t reply, uint32_t context);

}  // namespace canopy::app
