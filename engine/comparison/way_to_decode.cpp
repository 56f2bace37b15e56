#include "engine/comparison/way_to_decode.h"

#include <charconv>

namespace canopy {

std::string WayToDecode::name() const {
  std::string name(to_string(mode));
  return budget > 0 ? name + " " + std::to_string(budget) : name;
}

std::optional<WayToDecode> way_of(std::string_view name) {
  const size_t space = name.find(' ');
  const auto mode = decode_mode_of(name.substr(0, space));
  if (!mode || (space == std::string_view::npos) != (*mode != DecodeMode::tree)) return std::nullopt;
  if (*mode != DecodeMode::tree) return WayToDecode{*mode, 0};
  const std::string_view digits = name.substr(space + 1);
  uint32_t budget = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), budget);
  if (error != std::errc() || end != digits.data() + digits.size() || budget < 1 || budget > kMostBudget)
    return std::nullopt;
  return WayToDecode{DecodeMode::tree, budget};
}

}  // namespace canopy
