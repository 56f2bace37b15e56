#pragma once
// The shape of a limb: a ribbon along a cubic, cut into as few pieces as look smooth. Pure; pixels.

#include <array>
#include <cstdint>

#include "app/layout/plane.h"

namespace canopy::app {

/// A cubic from p to q with level ends and its controls at half, `begin` pixels thick at p and `end` at q, after a
/// level piece from x = from.
struct Ribbon {
  float from;
  TreePoint p, q;
  float begin, end;
  float tolerance = 0.2f;  // pixels from its edge to the pieces that it is cut in
};

struct SpinePoint {
  TreePoint at;
  TreePoint across;  // unit vector, downward where the ribbon runs to the right
  float half;        // half of its thickness
  float alpha;       // 0 ... 1 where the ends are soft
};

/// The middle line of a ribbon.
struct Spine {
  static constexpr uint32_t most_pieces = 48;  // of the curve
  std::array<SpinePoint, most_pieces + 4> point;
  uint32_t count = 0;
};

/// Cuts a ribbon so that its edges stay within a fraction of a pixel of their curves: sharp bends get more pieces, and
/// so do long limbs and thick ones. reached: the share of its width from the left. soft: pixels over which it fades out
/// at both ends.
Spine spine_of(const Ribbon& ribbon, float reached = 1, float soft = 0);

/// How sharply a spine bends at a point: 1 / radius in pixels, positive where the centre of the bend is below.
float bend_at(const Spine& spine, uint32_t point);

/// The point of the curve at u in [0, 1], with its direction across and its thickness.
SpinePoint on_curve(const Ribbon& ribbon, float u);

}  // namespace canopy::app
