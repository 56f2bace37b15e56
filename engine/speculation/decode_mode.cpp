#include "engine/speculation/decode_mode.h"

#include <array>

namespace canopy {
namespace {

constexpr std::array<std::string_view, 4> mode_names = {"ar", "chain", "tree", "adaptive"};

}  // namespace

std::string_view to_string(DecodeMode mode) {
  return mode_names.at(static_cast<size_t>(mode));
}

std::optional<DecodeMode> decode_mode_of(std::string_view name) {
  for (size_t i = 0; i < mode_names.size(); ++i) {
    if (mode_names[i] == name) return static_cast<DecodeMode>(i);
  }
  return std::nullopt;
}

}  // namespace canopy
