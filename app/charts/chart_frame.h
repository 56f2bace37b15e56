#pragma once
// The style of plots, and what stands around them: a title with what was counted, the axes, the marks of a legend.

#include <imgui.h>
#include <implot.h>

#include <span>
#include <string>
#include <string_view>

#include "app/base/figures.h"
#include "app/charts/ticks.h"
#include "app/look/dash.h"
#include "app/look/fonts.h"
#include "app/look/theme.h"

namespace canopy::app {

/// Sets sizes and colours of the current ImPlot context. Call when theme or scale change.
void apply_chart_style(const Theme& theme, float scale);

// Solid is measured, dashed predicted, dotted something to compare with. Of the current theme and scale.
ImPlotSpec measured_spec();
ImPlotSpec predicted_spec();  // solid as ImPlot draws it: use plot_dashed()
ImPlotSpec reference_spec();  // likewise: use plot_dotted()
ImPlotSpec accepted_spec();   // a line with markers, in the colour of accepted tokens

Dash predicted_dash();
Dash reference_dash();

/// A curve of the current plot in dashes; points in the plot's own units. Ends up inside the plot's area.
void plot_dashed(std::span<const double> x, std::span<const double> y, const ImPlotSpec& spec, Dash dash);
void plot_predicted(std::span<const double> x, std::span<const double> y);
/// A dotted line across the current plot.
void plot_reference(double y);

/// Title left, what is counted right; the tooltip says the denominator.
void chart_title(std::string_view title, std::string_view note, const std::string& tooltip_text = {});

struct Axes {
  Ticks x, y;
  double x_from = 0;  // where the axis begins; it ends at x.top
  double y_from = 0;
  bool x_lines = false;  // vertical grid lines only where they mean something
  bool x_labels = true;
};

/// A plot that stands still: the wheel belongs to the panel. It is an item of its id for tooltips and tests. Draw in it
/// with ImPlot only if it is true; it ends with its life.
class Chart {
 public:
  Chart(const char* id, ImVec2 size, const Axes& axes, const std::string& tooltip_text = {});
  ~Chart();
  Chart(const Chart&) = delete;
  Chart& operator=(const Chart&) = delete;
  explicit operator bool() const { return open_; }
  /// The mouse is over the plot's area; in the plot's units at ImPlot::GetPlotMousePos().
  bool hovered() const { return hovered_; }
  /// Words in the middle of the plot, for one without data.
  void say(std::string_view words) const;

 private:
  bool open_ = false, hovered_ = false;
};

/// A mark of the legend line: a short stroke and a word; returns where the next one goes.
enum class LegendMark { solid, dashed, dotted, dot, ring };
float legend_mark(ImVec2 at, LegendMark mark, Colour colour, std::string_view word);
float legend_width(std::string_view word);

}  // namespace canopy::app
