#include "engine/speculation/controller_choice.h"

#include <algorithm>
#include <cmath>

namespace canopy {
namespace {

constexpr uint32_t every_width_up_to = 64;
constexpr uint32_t coarse_step = 16;
// A chain is chosen only if its expected tokens exceed those of the best tree by this share.
constexpr double chain_margin = 0.02;

constexpr uint32_t shown_all_up_to = 40;
constexpr uint32_t shown = 64;

}  // namespace

uint32_t WidthLimits::widest() const {
  return std::min(budget == none ? none : budget + 1, rows);
}

uint32_t WidthLimits::deepest() const {
  const auto less_one = [](uint32_t limit) { return limit == 0 ? 0 : limit - 1; };
  return std::min({depth, tokens_left == none ? none : less_one(tokens_left),
                   context_left == none ? none : less_one(context_left)});
}

double worth(const WidthCurves& curves, double expected, double ms) {
  return curves.objective == WidthObjective::per_round ? expected / ms : expected - curves.tokens_per_ms * ms;
}

bool may_occur(uint32_t width, uint32_t built) {
  return width <= every_width_up_to || width % coarse_step == 0 || width == built;
}

WidthChoice choose_width(const WidthCurves& curves) {
  const auto forecast = [&](std::span<const double> emitted, uint32_t width) {
    return WidthForecast{width, emitted[width - 1], curves.ms[width - 1]};
  };
  const auto allowed = [&](uint32_t width) { return curves.ms[width - 1] <= curves.longest_ms; };
  const auto value = [&](const WidthForecast& f) { return worth(curves, f.expected, f.ms); };

  WidthChoice choice;
  choice.best = forecast(curves.tree, 1);
  const auto choose = [&](DecodeMode shape, const WidthForecast& best) {
    choice.shape = shape;
    choice.best = best;
  };
  const auto built = static_cast<uint32_t>(curves.tree.size());
  for (uint32_t width = 2; width <= built; ++width) {
    if (!may_occur(width, built) || !allowed(width)) continue;
    const WidthForecast tree = forecast(curves.tree, width);
    if (value(tree) > value(choice.best)) choose(DecodeMode::tree, tree);
  }
  for (uint32_t width = 2; width <= curves.chain.size(); ++width) {
    if (!allowed(width)) continue;
    const WidthForecast chain = forecast(curves.chain, width);
    const WidthForecast handicapped{width, chain.expected * (1 - chain_margin), chain.ms};
    const bool over_a_chain = choice.shape == DecodeMode::chain;
    if (value(over_a_chain ? chain : handicapped) > value(choice.best)) choose(DecodeMode::chain, chain);
  }
  return choice;
}

std::vector<WidthForecast> forecasts(const WidthCurves& curves, uint32_t chosen) {
  const auto built = static_cast<uint32_t>(curves.tree.size());
  // Beyond the narrow ones a geometric ladder that reaches `built` in the places left, but for chosen and widest.
  const double ratio = std::max(
      1.0, std::pow(double{static_cast<double>(built)} / shown_all_up_to, 1.0 / (shown - shown_all_up_to - 2)));
  std::vector<WidthForecast> result;
  double next = 1;
  for (uint32_t width = 1; width <= built; ++width) {
    if (width >= next || width == chosen || width == built) {
      result.push_back({width, curves.tree[width - 1], curves.ms[width - 1]});
    }
    if (width >= next) next = width < shown_all_up_to ? width + 1 : std::max(next * ratio, width + 1.0);
  }
  return result;
}

}  // namespace canopy
