#pragma once
// Some rounds as a picture that moves: the tree grows, is checked and lights up, and its words come into the text.

#include <optional>
#include <string>

#include "app/share/round_picture.h"
#include "app/share/shared_run.h"

namespace canopy::app {

/// Rounds of the longest animation, and of one of which nothing else was said.
inline constexpr size_t kMostAnimatedRounds = 60, kAnimatedRounds = 10;

/// An SVG file that moves by style alone, without a script. Without a theme it has the dark and the light one. Throws
/// cancelled, and what RoundCard throws.
std::string animated_svg(const SharedRun& run, const RoundRange& range, std::optional<ThemeKind> theme,
                         const PictureSize& size, const ShareCallbacks& callbacks = {});

}  // namespace canopy::app
