#pragma once
// What a path that its user picked, dropped or typed can be at all, before the engine looks at it.

#include <filesystem>
#include <string>

namespace canopy::app {

/// Why nothing can be opened there, as a sentence: a file that is neither a model nor a trace. Empty for all others,
/// of which the engine knows more: folders, models that are damaged, files that are not there.
std::string open_obstacle(const std::filesystem::path& path);

}  // namespace canopy::app
