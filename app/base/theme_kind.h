#pragma once

namespace canopy::app {

enum class ThemeKind { dark, light };

inline constexpr float kMinScale = 0.75f;
inline constexpr float kMaxScale = 3.0f;

}  // namespace canopy::app
