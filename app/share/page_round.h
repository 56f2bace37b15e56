#pragma once
// A round of a page: laid out here, so that the page's script only animates and paints (app/share/page/paint.js).

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/layout/tree_geometry.h"
#include "app/rounds/round_log.h"

namespace canopy::app {

/// Texts that stand once in a page and are named by their number.
class PageTexts {
 public:
  uint32_t number_of(const std::string& text);
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> texts_;
};

/// The canvas that the page's trees are laid out for, in pixels at 100%.
inline constexpr CanvasSize kPageCanvas = {1120, 500, 1};

/// A round of a log. Lengths are rounded to a tenth of a pixel, probabilities to ten-thousandths. Throws bad_input
/// where the log no longer has its tree.
nlohmann::ordered_json page_round(const RoundLog& log, size_t round, PageTexts& labels);

}  // namespace canopy::app
