#pragma once
// Another program that drags files onto a window, by the XDND protocol (version 5).

#include <string>
#include <vector>

namespace canopy::test {

/// Drops files on the window of this title, which it waits for. On a display connection of its own, so it may run on a
/// thread beside the window's. False when the window did not take them within ten seconds.
bool drop_files(const std::string& title, const std::vector<std::string>& paths);

}  // namespace canopy::test
