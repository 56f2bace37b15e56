#pragma once
// Whether a round had the width with the highest S(N) shown, and if not, why not. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/trace/round_record.h"

namespace canopy::app {

struct WidthSpeed;

struct ChoiceCheck {
  uint32_t best = 0;       // width of the highest S(N) within the limits; 1 is plain decoding; 0 where nothing is known
  bool is_argmax = false;  // the round had it
  bool loses = false;      // no width above 1 promised more than plain decoding
  std::string why_not;     // a sentence; empty where it had it, and where nothing is known
};

/// curve: S(N) as shown, ascending widths. plain_tokens_per_second: 0 where it is not known.
ChoiceCheck check_choice(const RoundRecord& record, const std::vector<WidthSpeed>& curve,
                         double plain_tokens_per_second);

}  // namespace canopy::app
