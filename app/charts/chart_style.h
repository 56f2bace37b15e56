#pragma once
// How plots look (look.md, section 5): ImPlot's style, and the four kinds of line that mean the same in every chart.

#include <span>

#include <imgui.h>
#include <implot.h>

#include "app/look/dash.h"
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

}  // namespace canopy::app
