#include "app/chat/context_meter.h"

#include <algorithm>
#include <numbers>
#include <string>

#include "app/look/widgets.h"
#include "app/state/context_use.h"

namespace canopy::app {
namespace {

constexpr float kMeter = 28, kMeterRing = 6.5f;

std::string share_words(const ContextUse& use, bool room) {
  return room && use.nearly_full() ? percent(std::min(1.0f, use.share()), 0) : "";
}

}  // namespace

float context_meter_width(const ViewModel& view, bool room) {
  const ContextUse use = context_use(view);
  if (use.planned == 0) return 0;
  const std::string words = share_words(use, room);
  return px(kMeter) + (words.empty() ? 0 : text_size(Type::mono_caption, words).x + px(6));
}

void draw_context_meter(const ViewModel& view, ImVec2 at, bool room) {
  const ContextUse use = context_use(view);
  if (use.planned == 0) return;
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 centre = {at.x + px(kMeter * 0.5f), at.y + px(kMeter * 0.5f)};
  const float share = std::clamp(use.share(), 0.0f, 1.0f), top = -std::numbers::pi_v<float> * 0.5f;
  const Colour colour = use.nearly_full() ? t.bonus : t.text2;
  list->AddCircle(centre, px(kMeterRing), ImGui::GetColorU32(t.line), 0, px(3));
  if (share > 0) {
    list->PathArcTo(centre, px(kMeterRing), top, top + share * 2 * std::numbers::pi_v<float>);
    list->PathStroke(ImGui::GetColorU32(colour), px(3));
  }
  const std::string words = share_words(use, room);
  if (!words.empty()) draw_text_middle(list, at.x + px(kMeter), centre.y, Type::mono_caption, t.bonus_text, words);
  ImGui::SetCursorScreenPos(at);
  ImGui::InvisibleButton("Context", {context_meter_width(view, room), px(kMeter)});
  tooltip(context_words(use).c_str());
}

}  // namespace canopy::app
