#pragma once
// The style of plots, and the titles, axes and legends around them.

#include <imgui.h>
#include <implot.h>

#include <span>
#include <string>
#include <string_view>

#include "app/base/figures.h"
#include "app/base/theme.h"
#include "app/charts/label_places.h"
#include "app/charts/ticks.h"
#include "app/look/dash.h"
#include "app/look/fonts.h"

namespace canopy::app {

/// Sets sizes and colours of the current ImPlot context. Call when theme or scale have changed.
void apply_chart_style(const Theme& theme, float scale);

// Line styles for the current theme and scale: solid for measured, dashed for predicted, dotted for values to compare
// with.
ImPlotSpec measured_spec();
ImPlotSpec predicted_spec();  // solid as ImPlot draws it: use plot_dashed()
ImPlotSpec reference_spec();  // likewise: use plot_dotted()
ImPlotSpec accepted_spec();   // a line with markers, in the colour of accepted tokens

Dash predicted_dash();
Dash reference_dash();

/// Draws a dashed curve into the current plot; points are in the plot's units. The curve is clipped to the plot's area.
void plot_dashed(std::span<const double> x, std::span<const double> y, const ImPlotSpec& spec, Dash dash);
void plot_predicted(std::span<const double> x, std::span<const double> y);
/// Draws a dotted horizontal line through the current plot.
void plot_reference(double y);

/// The area of the current plot in which labels may stand, in pixels.
Box plot_room();
/// Clears most of what was drawn under a label, so that no curve goes through its text.
void clear_behind(ImDrawList* list, const Box& box);

/// A title at the left and, at the right, what was counted; the tooltip says what shares are shares of.
void chart_title(std::string_view title, std::string_view note, const std::string& tooltip_text = {});

struct Axes {
  Ticks x, y;
  double x_from = 0;  // where the axis begins; it ends at x.top
  double y_from = 0;
  bool x_lines = false;  // draw vertical grid lines
  bool x_labels = true;
};

/// A plot without zooming and panning, so that the mouse wheel scrolls the panel. It is an item with its id, for
/// tooltips and tests. Draw in it with ImPlot only if it converts to true; the plot ends with this object.
class Chart {
 public:
  Chart(const char* id, ImVec2 size, const Axes& axes, const std::string& tooltip_text = {});
  ~Chart();
  Chart(const Chart&) = delete;
  Chart& operator=(const Chart&) = delete;
  explicit operator bool() const { return open_; }
  /// Whether the mouse is over the plot's area; ImPlot::GetPlotMousePos() then has its position in the plot's units.
  bool hovered() const { return hovered_; }
  /// Writes text in the middle of the plot, for a plot without data.
  void say(std::string_view words) const;

 private:
  bool open_ = false, hovered_ = false;
};

/// Writes what the axis across counts, below the chart, which must be the last item; takes no room by itself.
void axis_caption(std::string_view words);

/// Draws a mark of the legend, a short stroke and a word; returns the place for the next one.
enum class LegendMark { solid, dashed, dotted, dot, ring };
float legend_mark(ImVec2 at, LegendMark mark, Colour colour, std::string_view word);
float legend_width(std::string_view word);

}  // namespace canopy::app
