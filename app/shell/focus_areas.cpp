#include "app/shell/focus_areas.h"

#include <imgui_internal.h>

#include <algorithm>
#include <iterator>

#include "app/state/words.h"
#include "app/ui/look.h"

namespace canopy::app {
namespace {

constexpr double kNamedSeconds = 1.2;
constexpr std::string_view kFirst[] = {"Watch chats", "History",      "Watch chat", "Chat",      kComposerArea,
                                       kTreeArea,     "Watch passes", "Timeline",   kNumbersArea};
constexpr std::string_view kLast[] = {"Status bar", "Top bar"};
// Sentences and signs: nothing in them takes the keyboard, or it is next to the numbers.
constexpr std::string_view kPassedOver[] = {"Caption", "Legend", "Budget line"};

template <size_t N>
bool is_among(const std::string_view (&names)[N], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

/// The window that has a part. Tree and numbers of Watch are in one, as the keys of the tree work on all of it.
ImGuiWindow* window_of(std::string_view area) {
  const auto drawn = [](const std::string& name) -> ImGuiWindow* {
    ImGuiWindow* window = ImGui::FindWindowByName(name.c_str());
    return window && window->Active && !window->Hidden ? window : nullptr;
  };
  if (area == kTreeArea || area == kNumbersArea)
    if (ImGuiWindow* window = drawn("Watch tree")) return window;
  if (area == kComposerArea) {
    ImGuiWindow* window = drawn("Watch chat");
    return window ? window : drawn("Chat");
  }
  return drawn(std::string(area));
}

/// Where the keyboard is; `before`: the part that was reached last, as some parts share a window.
std::string focused_area(const std::vector<std::string>& order, const std::string& before) {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  const ImGuiWindow* root = g.NavWindow ? g.NavWindow->RootWindow : nullptr;
  if (!root) return "";
  // What is typed goes to the box of messages, wherever in the chat one clicked.
  const ImGuiWindow* chat = window_of(kComposerArea);
  if (root == chat && (g.ActiveId != 0 || !g.NavCursorVisible)) return std::string(kComposerArea);
  if (std::ranges::find(order, before) != order.end() && window_of(before) == root) return before;
  const auto found = std::ranges::find_if(order, [&](const std::string& each) { return window_of(each) == root; });
  return found == order.end() ? "" : *found;
}

}  // namespace

std::vector<std::string> focus_order(const std::vector<ScreenRegion>& drawn) {
  std::vector<ScreenRegion> parts = told_regions(drawn);
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(parts, [&](const ScreenRegion& each) { return each.name == name; });
  };
  std::vector<std::string> order;
  for (const std::string_view name : kFirst)
    if (has(name) || (name == kComposerArea && (has("Watch chat") || has("Chat")))) order.emplace_back(name);
  for (const ScreenRegion& each : parts)
    if (!is_among(kFirst, each.name) && !is_among(kLast, each.name) && !is_among(kPassedOver, each.name))
      order.emplace_back(each.name);
  for (const std::string_view name : kLast)
    if (has(name)) order.emplace_back(name);
  return order;
}

void FocusAreas::move(int by, const std::vector<ScreenRegion>& drawn) {
  std::vector<std::string> order = focus_order(drawn);
  std::erase_if(order, [](const std::string& name) { return window_of(name) == nullptr; });
  if (order.empty()) return;
  const auto at = std::ranges::find(order, focused_area(order, now_));
  const auto count = static_cast<std::ptrdiff_t>(order.size());
  const std::ptrdiff_t from = at == order.end() ? (by > 0 ? -1 : 0) : at - order.begin();
  now_ = order[static_cast<size_t>(((from + by) % count + count) % count)];
  until_ = ImGui::GetTime() + kNamedSeconds;
  keep_drawing(kNamedSeconds + 0.1);
  ImGuiWindow* window = window_of(now_);
  ImGui::ClearActiveID();
  ImGui::SetNavCursorVisibleAfterMove();
  ImGui::FocusWindow(window, ImGuiFocusRequestFlags_RestoreFocusedChild);
  want_focus(now_);
  // The chat begins at its first control, as its last one is mostly the box of messages, a part of its own.
  const bool chat = now_ == "Watch chat" || now_ == "Chat";
  ImGuiWindow* reached = ImGui::GetCurrentContext()->NavWindow;
  if (reached && (chat || reached->NavLastIds[0] == 0)) ImGui::NavInitWindow(chat ? window : reached, chat);
}

void FocusAreas::draw(const std::vector<ScreenRegion>& drawn) const {
  if (ImGui::GetTime() >= until_) return;
  const auto part = std::ranges::find_if(drawn, [&](const ScreenRegion& each) { return each.name == now_; });
  if (part == drawn.end()) return;  // the box of messages, whose border shows the focus
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetForegroundDrawList();
  const ImVec2 a = part->pos, b = {a.x + part->size.x, a.y + part->size.y};
  list->AddRect({a.x + px(1), a.y + px(1)}, {b.x - px(1), b.y - px(1)}, t.accent, px(4), px(2));
  const std::string_view title = region_title(now_);
  const ImVec2 size = {text_size(Type::secondary_semibold, title).x + px(16), px(22)};
  const ImVec2 from = {std::max(a.x, b.x - size.x - px(6)), std::min(a.y + px(6), b.y - size.y)};
  list->AddRectFilled(from, {from.x + size.x, from.y + size.y}, t.accent, px(4));
  draw_text_middle(list, from.x + px(8), from.y + size.y * 0.5f, Type::secondary_semibold, t.on_accent, title);
}

}  // namespace canopy::app
