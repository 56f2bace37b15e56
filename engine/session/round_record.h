#pragma once
// What happened in one round of decoding. Immutable once published; design.md section 5 lists what it grows into.

#include <cstdint>
#include <string_view>
#include <vector>

namespace canopy {

enum class DecodeMode { ar };

constexpr std::string_view to_string(DecodeMode mode) {
  switch (mode) {
    case DecodeMode::ar: return "ar";
  }
  return "?";
}

/// Wall time by stage, in milliseconds.
struct RoundTimes {
  double draft = 0;   // the drafter's pass
  double build = 0;   // the tree from the drafter's rows
  double verify = 0;  // the target's pass, with its submission and the download of its result
  double walk = 0;    // choosing the tokens: sampler, stop rules
  double commit = 0;  // moving accepted K/V and features behind the text
  double other = 0;   // the rest
  double total() const { return draft + build + verify + walk + commit + other; }
};

struct RoundRecord {
  uint32_t round = 0;    // from 0
  uint32_t context = 0;  // committed positions before the round
  DecodeMode mode = DecodeMode::ar;
  uint32_t width = 1;     // rows of the target's pass, root included
  uint32_t accepted = 0;  // drafted tokens
  std::vector<uint32_t> emitted;
  RoundTimes ms;
};

}  // namespace canopy
