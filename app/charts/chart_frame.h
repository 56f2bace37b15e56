#pragma once
// The frame of a chart: round numbers on its axes, places for labels, the style of plots, titles and legends.

#include <imgui.h>
#include <implot.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/theme.h"
#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/shapes.h"

namespace canopy::app {

// Ticks of an axis, at three or four round numbers. Pure.

/// The ticks of an axis that begins at 0.
struct Ticks {
  std::vector<double> at;           // 0, step, ...
  std::vector<std::string> labels;  // text of each
  double top = 1;                   // value at the end of the axis: a little above the highest one
};

/// Ticks up to `highest` in steps of 1, 2, 2.5, 4 or 5 times a power of ten; at most `lines`, not counting 0. whole:
/// only at whole numbers.
Ticks ticks_to(double highest, int lines = 3, bool whole = true);

/// Ticks at the given values, written as whole numbers; the axis ends at the last one.
Ticks ticks_at(std::vector<double> at);

/// Ticks of the width axis: 1, then multiples of the kernels' tile, with a step that gives at most eight.
Ticks width_ticks(double end);

/// Ticks of an axis of drafted nodes: 0, then as width_ticks().
Ticks budget_ticks(double end);

/// Which labels of an axis to write, so that no two touch: every first, second, ... of them, the first always. places:
/// of the ticks along the axis; lengths: of their labels along it; gap: least distance between two labels.
std::vector<bool> labels_that_fit(const std::vector<float>& places, const std::vector<float>& lengths, float gap);

// Places for the labels of marks in a chart: they cover neither each other nor a mark, and curves as little as
// possible. Pure; lengths are pixels.

struct Box {
  float left = 0, top = 0, right = 0, bottom = 0;
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool holds(float x, float y) const { return x >= left && x <= right && y >= top && y <= bottom; }
};

struct Spot {
  float x = 0, y = 0;
};

struct LabelWish {
  Spot mark;                    // centre of the mark
  float reach = 0;              // radius of the mark
  float width = 0, height = 0;  // of the label
};

/// A box inside `room` for each wish, in their order: the nearest free place to its mark. Earlier wishes are served
/// first. No box covers a mark or a `taken` box. curve: points that are avoided if possible.
std::vector<Box> place_labels(std::span<const LabelWish> wishes, const Box& room, std::span<const Box> taken,
                              std::span<const Spot> curve);

// The style of plots, and the titles, axes and legends around them.

/// Sets sizes and colours of the current ImPlot context. Call when theme or scale have changed.
void apply_chart_style(const Theme& theme, float scale);

// Line styles for the current theme and scale: solid for measured, dashed for predicted, dotted for values to compare
// with.
ImPlotSpec measured_spec();
ImPlotSpec predicted_spec();  // solid as ImPlot draws it: use plot_dashed()
ImPlotSpec reference_spec();  // likewise: use plot_reference()
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
