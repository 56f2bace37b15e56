#pragma once

#include <cstdlib>
#include <filesystem>

namespace canopy::test {

/// Path of the default model, which has to be downloaded: CANOPY_DEFAULT_MODEL, or where the set-up puts it. Empty when
/// it is not on this machine.
inline std::filesystem::path default_model() {
  if (const char* path = std::getenv("CANOPY_DEFAULT_MODEL"); path != nullptr && *path != '\0') return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr) return {};
  const auto cached = std::filesystem::path(home) / ".cache/canopy/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  return std::filesystem::exists(cached) ? cached : std::filesystem::path();
}

}  // namespace canopy::test
