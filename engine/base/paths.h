#pragma once
// Where Canopy keeps its files, by the XDG base directory specification. Each function creates its folder (readable by
// the user alone) when it is not there, and throws bad_input naming folder and reason when it cannot.

#include <filesystem>

namespace canopy {

/// What can be made again: pipeline caches, calibrations, downloads. $CANOPY_CACHE_DIR as it is, or
/// $XDG_CACHE_HOME/canopy, or ~/.cache/canopy.
std::filesystem::path cache_dir();

/// Settings: $XDG_CONFIG_HOME/canopy or ~/.config/canopy.
std::filesystem::path config_dir();

/// Conversations and traces: $XDG_DATA_HOME/canopy or ~/.local/share/canopy.
std::filesystem::path data_dir();

}  // namespace canopy
