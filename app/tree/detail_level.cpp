#include "app/tree/detail_level.h"

#include <array>
#include <cstddef>

namespace canopy::app {
namespace {

constexpr std::array<float, 6> kFrom = {0, 2, 5, 14, 34, 40};  // pixels at 100%, by Detail
constexpr float kSlack = 0.05f;                                // to either side of a border

}  // namespace

float least_row_height(Detail detail) {
  return kFrom[static_cast<size_t>(detail)];
}

Detail detail_for(float row_height, std::optional<Detail> before) {
  size_t level = 0;
  for (size_t next = 1; next < kFrom.size(); ++next) {
    float border = kFrom[next];
    if (before) border *= next <= static_cast<size_t>(*before) ? 1 - kSlack : 1 + kSlack;
    if (row_height >= border) level = next;
  }
  return static_cast<Detail>(level);
}

}  // namespace canopy::app
