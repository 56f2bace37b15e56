#pragma once
// What heads behind a drafter's block say of its places: MarkovHead and CandidateSelector.

#include <cstdint>
#include <vector>

namespace canopy {

/// A place of the block, from 0 on, and the token before it.
struct BlockPlace {
  uint32_t slot = 0;
  uint32_t before = 0;
  bool operator==(const BlockPlace&) const = default;
};

/// What is likeliest at some places, a list for each.
struct PlaceLists {
  std::vector<uint32_t> tokens;    // [places, candidates] ids of the target's vocabulary
  std::vector<float> logits;       // [places, candidates] largest first, ties by the lowest token
  std::vector<float> log_sum_exp;  // [places]
  std::vector<double> confidence;  // [places] that the first is right; empty where nothing says so
};

}  // namespace canopy
