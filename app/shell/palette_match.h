#pragma once

#include <string_view>

namespace canopy::app {

/// How well a line of the palette answers what was typed; 0: not at all. Words of the query may come in any order, each
/// at the start of a word; failing that, its letters in order.
int palette_match(std::string_view query, std::string_view line);

}  // namespace canopy::app
