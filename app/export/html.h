#pragma once
// Web pages that are one file, and charts in them as inline SVG. Nothing is loaded from elsewhere, and a
// Content-Security-Policy forbids it.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace canopy::app {

/// Text as the content of an element or attribute: safe whatever it holds. Line breaks stay.
std::string html_text(std::string_view text);

/// JSON as the content of a <script type="application/json">: only ASCII, and nothing that could end the element.
std::string html_json(const nlohmann::ordered_json& json);

struct HtmlPage {
  std::string title;
  std::string style;   // CSS; the colours of the themes come before it
  std::string script;  // JavaScript; empty: the page has none
  std::string body;    // HTML, in which all foreign text went through html_text() or html_json()
};

/// The whole file. Its policy allows this style and this script, by their hashes, and no connection, picture or frame.
std::string html_of(const HtmlPage& page);

// Charts of a page as inline SVG. Colours are those of the page's style, by the names of its classes.

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
