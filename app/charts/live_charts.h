#pragma once
// The charts of the statistics panel, one function each; all in the width there is.

#include "app/charts/series.h"
#include "app/charts/statistics_view.h"

namespace canopy::app {

void draw_speed(const SpeedSeries& series, const StatisticsView& view);
void draw_histogram(const StatisticsView& view);
void draw_depths(const StatisticsView& view);
void draw_stages(const StatisticsView& view);

}  // namespace canopy::app
