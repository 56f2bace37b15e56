#pragma once
// The shapes of a tree's limbs and tufts on its canvas: ribbons along cubics, cut into pieces, and bundles of twigs.

#include <array>
#include <cstdint>
#include <vector>

#include "app/tree/tree_geometry.h"

namespace canopy::app {

// The shape of a limb: a ribbon along a cubic, cut into as few pieces as look smooth. Pure; pixels.

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

// The shapes of a tree's limbs and tufts on its canvas, for everything that draws them. Pure; pixels.

/// The ribbon of a limb. parent_width: of the parent's pill as it looks now, where the limb begins. width: of the
/// limb's thickness, the share that is drawn. scale: pixels for each unit of the design.
Ribbon limb_ribbon(const TreeModel& tree, const TreeGeometry& geometry, const Limb& limb, float parent_width,
                   float width, float scale);

/// A twig is a cubic from the bundle's beginning: level there, and level at its end.
struct Twig {
  TreePoint end;
  TreePoint leave, arrive;  // its controls
  bool head = false;        // a child of the tuft's parent, and not one of the deeper nodes
};

struct TwigBundle {
  TreePoint from;
  float wood = 1;  // thickness
  float dot = 1;   // radius at the ends
  std::vector<Twig> twigs;
};

TwigBundle twigs_of(const Tuft& tuft, const TuftBox& box, float scale);

}  // namespace canopy::app
