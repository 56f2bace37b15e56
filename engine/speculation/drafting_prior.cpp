#include "engine/speculation/drafting_prior.h"

#include <algorithm>
#include <cmath>

namespace canopy {

double believed_emitted(uint32_t width, uint32_t depths) {
  constexpr double accepted = 0.85;
  const uint32_t deepest = std::min(std::max(width, 1u) - 1, depths);
  return (1 - std::pow(accepted, deepest + 1)) / (1 - accepted);
}

}  // namespace canopy
