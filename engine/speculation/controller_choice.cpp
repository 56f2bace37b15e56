#include "engine/speculation/controller_choice.h"

#include <algorithm>
#include <cmath>

namespace canopy {
namespace {

constexpr uint32_t every_width_up_to = 64;
constexpr uint32_t coarse_step = 16;
// A chain's lead over the best tree, in share of its tokens, that is taken for more than luck.
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

double worth(const WidthQuestion& question, double expected, double ms) {
  return question.objective == WidthObjective::per_round ? expected / ms : expected - question.tokens_per_ms * ms;
}

bool may_occur(uint32_t width, uint32_t built) {
  return width <= every_width_up_to || width % coarse_step == 0 || width == built;
}

WidthAnswer choose_width(const WidthQuestion& question) {
  const auto forecast = [&](std::span<const double> emitted, uint32_t width) {
    return WidthForecast{width, emitted[width - 1], question.ms[width - 1]};
  };
  const auto allowed = [&](uint32_t width) { return question.ms[width - 1] <= question.longest_ms; };
  const auto value = [&](const WidthForecast& f) { return worth(question, f.expected, f.ms); };

  WidthAnswer answer{DecodeMode::ar, forecast(question.tree, 1)};
  const auto built = static_cast<uint32_t>(question.tree.size());
  for (uint32_t width = 2; width <= built; ++width) {
    if (!may_occur(width, built) || !allowed(width)) continue;
    const WidthForecast tree = forecast(question.tree, width);
    if (value(tree) > value(answer.best)) answer = {DecodeMode::tree, tree};
  }
  for (uint32_t width = 2; width <= question.chain.size(); ++width) {
    if (!allowed(width)) continue;
    const WidthForecast chain = forecast(question.chain, width);
    const WidthForecast handicapped{width, chain.expected * (1 - chain_margin), chain.ms};
    const bool over_a_chain = answer.shape == DecodeMode::chain;
    if (value(over_a_chain ? chain : handicapped) > value(answer.best)) answer = {DecodeMode::chain, chain};
  }
  return answer;
}

std::vector<WidthForecast> forecasts(const WidthQuestion& question, uint32_t chosen) {
  const auto built = static_cast<uint32_t>(question.tree.size());
  // Beyond the narrow ones a geometric ladder that reaches `built` in the places left, but for chosen and widest.
  const double ratio = std::max(
      1.0, std::pow(double{static_cast<double>(built)} / shown_all_up_to, 1.0 / (shown - shown_all_up_to - 2)));
  std::vector<WidthForecast> result;
  double next = 1;
  for (uint32_t width = 1; width <= built; ++width) {
    if (width >= next || width == chosen || width == built) {
      result.push_back({width, question.tree[width - 1], question.ms[width - 1]});
    }
    if (width >= next) next = width < shown_all_up_to ? width + 1 : std::max(next * ratio, width + 1.0);
  }
  return result;
}

}  // namespace canopy
