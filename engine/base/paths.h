#pragma once
// Where Canopy keeps its files, by the XDG base directory specification. Each function creates its folder (readable by
// the user alone) when it is not there, and throws bad_input naming folder and reason when it cannot.

#include <filesystem>
#include <optional>
#include <string_view>

namespace canopy {

/// Folder of files that can be made again: pipeline caches, calibrations, downloads. $CANOPY_CACHE_DIR unchanged, or
/// $XDG_CACHE_HOME/canopy, or ~/.cache/canopy.
std::filesystem::path cache_dir();

/// Settings: $XDG_CONFIG_HOME/canopy or ~/.config/canopy.
std::filesystem::path config_dir();

/// Conversations and traces: $XDG_DATA_HOME/canopy or ~/.local/share/canopy.
std::filesystem::path data_dir();

/// A file of the repository's assets folder: beside the program as it was built (../assets) or installed
/// (../share/canopy). Nothing when it is in neither place.
std::optional<std::filesystem::path> find_asset(std::string_view name);

}  // namespace canopy
