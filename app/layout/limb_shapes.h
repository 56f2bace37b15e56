#pragma once
// The shapes of a tree's limbs and tufts on its canvas, for everything that draws them. Pure; pixels.

#include <cstdint>
#include <vector>

#include "app/layout/ribbon.h"
#include "app/layout/tree_geometry.h"

namespace canopy::app {

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
