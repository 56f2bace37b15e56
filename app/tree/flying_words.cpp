#include "app/tree/flying_words.h"

#include <algorithm>

#include "app/layout/tree_transition.h"

namespace canopy::app {
namespace {

constexpr float kApart = 60.0f / 700.0f;  // share of the phase between the starts of two words
constexpr float kTrail = 0.18f;           // share of the way over which a word draws its trail

void draw_flying(ImDrawList* list, const TreeCanvas& tree, uint32_t node, ImVec2 to, float t) {
  const Theme& theme = colours();
  const bool bonus = tree.shown().model.bonus == node;
  const ImVec2 from = tree.screen_of(node), at = flight(from, to, t),
               behind = flight(from, to, std::max(0.0f, t - kTrail));
  const std::string& label = tree.shown().labels[node];
  const float width = text_size(Type::mono_semibold, label).x + px(16), half = px(11);
  const Colour colour = bonus ? theme.bonus : theme.accepted;
  list->AddLine(behind, at, with_alpha(colour, 0.5f), units(2));
  const ImVec2 a = {at.x - width * 0.5f, at.y - half}, b = {at.x + width * 0.5f, at.y + half};
  list->AddRectFilled(a, b, bonus ? theme.bonus_bg : theme.accepted_bg, half * 0.5f);
  list->AddRect(a, b, colour, half * 0.5f, units(1.5f));
  draw_word(list, {a.x + px(8), at.y}, Type::mono_semibold, text_height(Type::mono_semibold),
            bonus ? theme.bonus_text : theme.text, label, width);
}

}  // namespace

ImVec2 flight(ImVec2 from, ImVec2 to, float t) {
  return {from.x + (to.x - from.x) * ease_in_out(t), from.y + (to.y - from.y) * std::clamp(t, 0.0f, 1.0f)};
}

float flown(float progress, size_t index, size_t words) {
  const float apart = words > 1 ? std::min(kApart, 0.4f / static_cast<float>(words - 1)) : 0;
  const float start = apart * static_cast<float>(index), length = kArrived - apart * static_cast<float>(words - 1);
  return std::clamp((progress - start) / length, 0.0f, 1.0f);
}

void draw_flying_words(ImDrawList* list, const TreeCanvas& tree, const Playback& playback, ImVec2 text_end) {
  if (!playback.slow_motion || playback.phase != Phase::commit || playback.told() || !tree.shown().record) return;
  const std::vector<uint32_t>& path = tree.shown().model.path;
  const size_t words = path.size() - 1;  // the root was in the text before
  for (size_t i = 0; i < words; ++i) {
    const float t = flown(playback.progress, i, words);
    if (t > 0) draw_flying(list, tree, path[i + 1], text_end, t);
  }
}

}  // namespace canopy::app
