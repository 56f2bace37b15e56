#include "app/timeline/timeline_view.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {
namespace {

constexpr double kBarGap = 5;    // between bars at kRoundPitch
constexpr double kSmallGap = 1;  // between the narrowest bars
constexpr double kLeastPitch = 1e-4;

double fitting_pitch(size_t rounds, double width) {
  return std::clamp(width / static_cast<double>(std::max<size_t>(rounds, 1)), kLeastPitch, kRoundPitch);
}

/// The width of a bar. The gap shrinks with the pitch, so that a bar is never thinner than 2 pixels.
double bar_width(double pitch) {
  const double gap = std::clamp(pitch / kRoundPitch * kBarGap, kSmallGap, kBarGap);
  return std::max(2.0, pitch - gap);
}

/// N, the drafted nodes of a round.
uint32_t drafted_of(const RoundSummary& round) {
  return round.width - std::min(round.width, 1u);
}

TimelineColumn column_of(const RoundLog& log, size_t first, size_t rounds) {
  TimelineColumn column;
  column.first = first;
  column.rounds = rounds;
  uint64_t emitted = 0, accepted = 0;
  for (size_t i = first; i < first + rounds; ++i) {
    const RoundSummary& round = log.summary(i);
    emitted += round.emitted;
    accepted += std::min(round.accepted, round.emitted);
    if (round.emitted > column.most_emitted) {
      column.most_emitted = round.emitted;
      column.most_accepted = round.accepted;
    }
    column.most_drafted = std::max(column.most_drafted, drafted_of(round));
  }
  column.mean_emitted = static_cast<double>(emitted) / static_cast<double>(rounds);
  column.mean_accepted = static_cast<double>(accepted) / static_cast<double>(rounds);
  return column;
}

}  // namespace

TimelineView timeline_view(const TimelineZoom& zoom, size_t rounds, size_t shown, double width) {
  TimelineView view;
  view.pitch = zoom.pitch.value_or(fitting_pitch(rounds, width));
  const double seen = width / view.pitch;  // number of rounds that fit
  double first = zoom.pitch ? zoom.first : 0;
  const auto at = static_cast<double>(shown);
  if (at < first) first = at;
  if (at + 1 > first + seen) first = at + 1 - seen;
  view.first = std::clamp(first, 0.0, std::max(0.0, static_cast<double>(rounds) - seen));
  return view;
}

TimelineZoom zoomed(const TimelineView& view, double factor, double x, size_t rounds, double width) {
  const double least = fitting_pitch(rounds, width);
  const double pitch = std::clamp(view.pitch * factor, least, kWidestPitch);
  if (factor < 1 && pitch <= least) return {};
  const double under = view.first + x / view.pitch;
  return {pitch, under - x / pitch};
}

TimelineZoom moved(const TimelineView& view, double pixels) {
  return {view.pitch, view.first + pixels / view.pitch};
}

size_t round_at(const TimelineView& view, double x, size_t rounds) {
  const double round = std::floor(view.first + x / view.pitch);
  return static_cast<size_t>(std::clamp(round, 0.0, static_cast<double>(rounds - 1)));
}

std::vector<TimelineColumn> timeline_columns(const RoundLog& log, const TimelineView& view, double width) {
  std::vector<TimelineColumn> columns;
  if (log.rounds() == 0) return columns;
  const auto each = static_cast<size_t>(std::max(1.0, std::ceil(kNarrowestPitch / view.pitch - 1e-9)));
  const double pitch = view.pitch * static_cast<double>(each);
  const size_t from = static_cast<size_t>(std::max(0.0, view.first)) / each * each;
  for (size_t first = from; first < log.rounds(); first += each) {
    const double x = view.x_of(first);
    if (x >= width) break;
    columns.push_back(column_of(log, first, std::min(each, log.rounds() - first)));
    columns.back().x = x;
    columns.back().width = bar_width(pitch);
  }
  return columns;
}

void TimelineScale::include(const RoundSummary& round) {
  emitted = std::max(emitted, round.emitted);
  drafted = std::max(drafted, drafted_of(round));
}

}  // namespace canopy::app
