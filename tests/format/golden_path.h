#pragma once
// The path of golden files, and their bytes with something changed.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace canopy::test {

/// tests/golden/NAME, or NAME in the folder CANOPY_GOLDEN_DIR if that is set.
inline std::filesystem::path golden(const std::string& name) {
  const char* chosen = std::getenv("CANOPY_GOLDEN_DIR");
  const std::filesystem::path folder =
      chosen != nullptr ? chosen : std::filesystem::path(CANOPY_SOURCE_DIR) / "tests" / "golden";
  return folder / name;
}

inline std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Those of a golden file with one text in the place of another as long.
inline std::string renamed(const std::string& name, const std::string& from, const std::string& to) {
  std::string bytes = file_bytes(golden(name));
  EXPECT_EQ(from.size(), to.size());
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return bytes.replace(at, from.size(), to);
}

/// Those of a golden GGUF file with another number of 32 bits behind a key of the metadata.
inline std::string renumbered(const std::string& name, const std::string& key, uint32_t value) {
  std::string bytes = file_bytes(golden(name));
  const size_t found = bytes.find(key), at = found + key.size() + sizeof(uint32_t);  // behind the type
  EXPECT_NE(found, std::string::npos) << key;
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return bytes;
}

}  // namespace canopy::test
