#include "app/shell/watch_places.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace canopy::app {
namespace {

constexpr float kGap = 4, kTreeShare = 0.6f;
constexpr float kWhole = 1000;      // narrower windows need all of their height for the chat beside the tree
constexpr float kSideBySide = 480;  // narrower windows have the chat below the tree
constexpr float kLeastChat = 120, kChatShare = 0.55f;
constexpr float kLeastTree = 60;  // with less left for it, there is only the chat

/// Heights of the parts above and below the tree, each step with less.
struct Step {
  float numbers, caption, legend, budget, strip;
  bool subtitles;
};
constexpr Step kSteps[] = {
    {70, 40, 26, 36, 82, true}, {48, 36, 24, 32, 56, false}, {44, 34, 22, 0, 36, false}, {44, 34, 0, 0, 36, false},
    {40, 32, 0, 0, 32, false},  {0, 32, 0, 0, 32, false},    {0, 30, 0, 0, 0, false},
};
constexpr Step kTreeAlone = {0, 0, 0, 0, 0, false};

float chat_width(float width) {
  const float most = width >= 2400 ? 420.0f : width >= 1600 ? 340.0f : 288.0f;
  return std::clamp(std::floor(width * 0.32f), 180.0f, most);
}

/// What a step leaves of a height for the tree.
float tree_height(const Step& step, float height) {
  float rest = height - step.caption;
  for (const float part : {step.numbers, step.strip})
    if (part > 0) rest -= part + kGap;
  return rest - step.legend - (step.budget > 0 ? step.budget + kGap : 0);
}

/// The first step that leaves the tree `share` of the height, or the last one.
const Step* step_for(float height, float share) {
  const Step* step = kSteps;
  while (step != std::end(kSteps) - 1 && tree_height(*step, height) < share) ++step;
  return step;
}

/// Places all but the chat in a rectangle. strip_left: where the strip begins.
void place_tree(WatchPlaces& at, const WatchRect& room, const Step& step, float strip_left) {
  at.subtitles = step.subtitles;
  float y = room.y;
  if (step.numbers > 0) at.numbers = {room.x, y, room.width, step.numbers};
  if (step.numbers > 0) y += step.numbers + kGap;
  at.caption = {room.x, y, room.width, step.caption};
  y += step.caption;
  at.tree = {room.x, y, room.width, std::max(1.0f, tree_height(step, room.height))};
  y += at.tree.height;
  if (step.legend > 0) at.legend = {room.x, y, room.width, step.legend};
  y += step.legend;
  if (step.budget > 0) at.budget = {room.x, y + kGap, room.width, step.budget};
  const float bottom = room.y + room.height;
  if (step.strip > 0) at.strip = {strip_left, bottom - step.strip, room.x + room.width - strip_left, step.strip};
}

}  // namespace

WatchPlaces watch_places(float width, float height, float bar, bool tour) {
  WatchPlaces at;
  const float top = bar + kGap, rest = height - top;
  if (width >= kSideBySide) {
    const float chat = chat_width(width), left = chat + kGap;
    const Step& step = *step_for(rest, kTreeShare * height);
    place_tree(at, {left, top, width - left, rest}, step, width < kWhole ? left : 0);
    const float end = width >= kWhole && at.strip.shown() ? at.strip.y - kGap : height;
    at.chat = {0, top, chat, end - top};
    return at;
  }
  if (tour) {
    place_tree(at, {0, top, width, rest}, *step_for(rest, kTreeShare * height), 0);
    return at;
  }
  at.chat_below = true;
  float chat = std::max(kLeastChat, std::floor(rest * kChatShare));
  if (const float room = rest - chat - kGap; room >= kLeastTree) {
    const Step* step = step_for(room, kTreeShare * room);
    place_tree(at, {0, top, width, room}, tree_height(*step, room) < kLeastTree ? kTreeAlone : *step, 0);
  } else {
    chat = std::max(1.0f, rest);
  }
  at.chat = {0, height - chat, width, chat};
  return at;
}

}  // namespace canopy::app
