#pragma once
// Plays another program that drags files onto a window, by the XDND protocol (version 5).

#include <string>
#include <vector>

namespace canopy::test {

/// Waits for the window with this title and drops files on it. Uses its own connection to the display, so it may run on
/// a thread beside the window's. False when the window has not taken them within ten seconds.
bool drop_files(const std::string& title, const std::vector<std::string>& paths);

}  // namespace canopy::test
