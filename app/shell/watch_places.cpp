#include "app/shell/watch_places.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace canopy::app {
namespace {

constexpr float kGap = 4, kTreeShare = 0.6f, kChatBelow = 72;
constexpr float kBeside = 1000;     // width from which the chat lies beside the tree
constexpr float kTallEnough = 560;  // less height has no rows to spare, so the chat lies beside the tree there too
constexpr float kNarrowest = 480;   // narrower windows have no chat

/// Heights of the parts above and below the tree, each step with less.
struct Step {
  float numbers, caption, legend, budget, strip;
  bool subtitles;
};
constexpr Step kSteps[] = {
    {70, 40, 26, 36, 82, true}, {48, 36, 24, 32, 56, false}, {44, 34, 22, 0, 36, false}, {44, 34, 0, 0, 36, false},
    {40, 32, 0, 0, 32, false},  {0, 32, 0, 0, 32, false},    {0, 30, 0, 0, 0, false},
};

float chat_width(float width) {
  const float most = width >= 2400 ? 420.0f : width >= 1600 ? 340.0f : 288.0f;
  return std::clamp(std::floor(width * 0.32f), 180.0f, most);
}

float tree_height(const Step& step, float height, float bar, bool below) {
  float rest = height - bar - step.caption - kGap;
  for (const float part : {step.numbers, step.strip})
    if (part > 0) rest -= part + kGap;
  rest -= step.legend + (step.budget > 0 ? step.budget + kGap : 0);
  return rest - (below ? kChatBelow + kGap : 0);
}

}  // namespace

WatchPlaces watch_places(float width, float height, float bar) {
  WatchPlaces at;
  at.chat_below = width < kBeside && height >= kTallEnough;
  const Step* step = kSteps;
  while (step != std::end(kSteps) - 1 && tree_height(*step, height, bar, at.chat_below) < kTreeShare * height) ++step;
  at.subtitles = step->subtitles;
  const float beside = at.chat_below || width < kNarrowest ? 0 : chat_width(width);
  const float left = beside > 0 ? beside + kGap : 0, room = width - left;
  const float strip_top = height - step->strip, body = strip_top - (step->strip > 0 ? kGap : 0);
  float y = bar + kGap;
  if (step->numbers > 0) at.numbers = {left, y, room, step->numbers};
  if (step->numbers > 0) y += step->numbers + kGap;
  at.caption = {left, y, room, step->caption};
  y += step->caption;
  at.tree = {left, y, room, std::max(1.0f, tree_height(*step, height, bar, at.chat_below))};
  y += at.tree.height;
  if (step->legend > 0) at.legend = {left, y, room, step->legend};
  y += step->legend;
  if (step->budget > 0) at.budget = {left, y + kGap, room, step->budget};
  if (at.chat_below) at.chat = {0, body - kChatBelow, width, kChatBelow};
  if (beside > 0) at.chat = {0, bar + kGap, beside, body - bar - kGap};
  if (step->strip > 0) at.strip = {0, strip_top, width, step->strip};
  return at;
}

}  // namespace canopy::app
