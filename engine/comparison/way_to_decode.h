#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/speculation/decode_mode.h"

namespace canopy {

/// Drafted nodes of the largest tree that can be asked for.
inline constexpr uint32_t kMostBudget = 1024;

/// A mode and, in mode tree, its size.
struct WayToDecode {
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 0;  // drafted nodes of mode tree; 0 in the other modes

  std::string name() const;  // "chain", "tree 16"
  bool operator==(const WayToDecode&) const = default;
};

/// By that name; nothing for another, or for a tree that is larger than allowed or empty.
std::optional<WayToDecode> way_of(std::string_view name);

}  // namespace canopy
