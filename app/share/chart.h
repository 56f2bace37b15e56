#pragma once
// Charts of a page as inline SVG. Colours are those of the page's style, by the names of its classes.

#include <string>
#include <vector>

namespace canopy::app {

/// A bar, or a part of one.
struct ChartBar {
  std::string label;  // below or beside it
  double value = 0;
  std::string words;    // the value as text
  std::string colour;   // class: "accepted", "accent", "draft", ...
  double error = 0;     // half the length of its whisker; 0: none
  std::string details;  // shown under the mouse
};

/// Upright bars from 0, with their labels below and values above.
std::string upright_bars(const std::vector<ChartBar>& bars, const std::string& describes);

/// Level bars from 0, with their labels before and values behind them. reference: a dotted line there; 0: none.
std::string level_bars(const std::vector<ChartBar>& bars, const std::string& describes, double reference = 0);

/// One bar made of parts, with a line of what they are below it.
std::string parted_bar(const std::vector<ChartBar>& parts, const std::string& describes);

inline constexpr double kLineChart = 210;  // height of one that stands by itself
/// Height of level_bars() of so many.
double height_of_bars(size_t bars);

struct ChartPoint {
  double x = 0, y = 0, error = 0;
  std::string words;  // of x, below the axis
};

struct ChartLine {
  std::string label;  // at its end; empty: none
  std::vector<ChartPoint> points;
};

/// Lines over x on a logarithmic axis, from 0 upward, with whiskers; the first one is drawn strongest. reference: a
/// dotted line; 0: none. height: in the units of a chart's text, of which all charts beside each other have 520 across.
std::string line_chart(const std::vector<ChartLine>& lines, const std::string& describes, double reference = 0,
                       double height = kLineChart);

}  // namespace canopy::app
