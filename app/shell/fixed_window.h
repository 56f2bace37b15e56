#pragma once
// A window of Dear ImGui at a fixed place, without decoration and padding: the bars, the start page, the parts of
// Watch.

#include <functional>

#include <imgui.h>

#include "app/base/theme.h"

namespace canopy::app {

/// pos, size: pixels. contents draws into the window.
void draw_fixed(const char* name, ImVec2 pos, ImVec2 size, Colour background, const std::function<void()>& contents);

}  // namespace canopy::app
