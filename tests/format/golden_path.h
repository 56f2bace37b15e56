#pragma once
// The path of golden files.

#include <cstdlib>
#include <filesystem>
#include <string>

namespace canopy::test {

/// tests/golden/NAME, or NAME in the folder CANOPY_GOLDEN_DIR if that is set.
inline std::filesystem::path golden(const std::string& name) {
  const char* chosen = std::getenv("CANOPY_GOLDEN_DIR");
  const std::filesystem::path folder =
      chosen != nullptr ? chosen : std::filesystem::path(CANOPY_SOURCE_DIR) / "tests" / "golden";
  return folder / name;
}

}  // namespace canopy::test
