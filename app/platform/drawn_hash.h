#pragma once
// Whether a frame would look like the one before: a software device then need not draw it.

#include <cstdint>

#include <imgui.h>

namespace canopy::app {

/// A hash of all that decides how a frame looks: size, background, vertices, indices, clips and textures. Frames with
/// the same value look the same (but for a chance of 2^-64).
uint64_t drawn_hash(const ImDrawData& data, ImU32 clear);

/// Whether a texture has contents that were not uploaded yet, so that the frame must be drawn.
bool textures_wait(const ImDrawData& data);

}  // namespace canopy::app
