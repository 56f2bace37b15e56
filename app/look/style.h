#pragma once
// The style of Dear ImGui in the colours of a theme.

#include "app/base/theme.h"

struct ImGuiStyle;

namespace canopy::app {

/// Sets all sizes (at scale) and colours of the style. Starts from the sizes at 100% each time, so that scaling up and
/// down again gives the same style.
void apply_style(ImGuiStyle& style, const Theme& theme, float scale);

}  // namespace canopy::app
