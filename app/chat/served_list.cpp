#include "app/chat/served_list.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr float kServedMargin = 12, kServedHead = 46, kServedRow = 44, kServedMore = 28, kServedPadding = 12;
constexpr const char* kServedMenu = "Served menu";

/// Draws the menu of a request, where it is open.
void draw_served_menu(const ViewModel& view, const ServedReply& reply, CommandSink& sink) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kServedMenu)) {
    const auto row = [&](const char* id, bool possible, ServedCommand command) {
      if (!menu_row(id, id, "", false, possible, px(220))) return;
      sink.post(std::move(command));
      ImGui::CloseCurrentPopup();
    };
    row(reply.paused ? "Go on" : "Pause", !reply.over && !reply.stopping, HoldServed{reply.id(), !reply.paused});
    row("Stop", !reply.over && !reply.stopping, EndServed{reply.id()});
    if (reply.recorded) {
      if (menu_row("Open the recording", "Open the recording", "", false, true, px(220))) {
        sink.post(RoundsCommand(OpenTrace{reply.recording}));
        ImGui::CloseCurrentPopup();
      }
    } else {
      row("Record", reply.recording.empty(), TapeServed{reply.id()});
      tooltip("Its prompt, its text and all its passes, from the first on, into a file of the recordings\u2019 folder");
    }
    row("Keep as chat", reply.over && !view.busy(), KeepServed{reply.id()});
    tooltip(reply.over ? "Makes it a chat of your own, with its trees" : "Once it is over");
    row("Take off the list", reply.over, DropServed{reply.id()});
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

Colour served_colour(const ServedReply& reply) {
  const Theme& t = colours();
  if (reply.over) return reply.problem.empty() ? t.unreached : t.rejected;
  return reply.paused || reply.stopping ? t.bonus : t.accent;
}

/// The settings open where the heading is pressed.
void draw_served_head(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddLine({a.x, a.y + 0.5f}, {a.x + width, a.y + 0.5f}, t.line);
  const bool pressed = ImGui::InvisibleButton("Served", {width, px(kServedHead)}, ImGuiButtonFlags_EnableNav);
  if (pressed) sink.post(ServedCommand(ShowServing{}));
  if (ImGui::IsItemHovered())
    list->AddRectFilled({a.x + px(6), a.y + px(3)}, {a.x + width - px(6), a.y + px(kServedHead - 1)},
                        mix(t.panel, t.text, kHoverMix), px(5));
  const std::string words = serving_words(view);
  tooltip(("What programs ask of this model\n" + words + "\nPress for address, key and switch  F11").c_str());
  const float x = a.x + px(kServedMargin), room = width - px(kServedMargin) * 2;
  draw_text_middle(list, x, a.y + px(15), Type::base_semibold, t.text, elided(Type::base_semibold, "Served", room));
  draw_text_middle(list, x, a.y + px(33), Type::caption, t.text2, elided(Type::caption, words, room));
}

/// True when it was chosen.
bool draw_served_row(const ViewModel& view, const ServedReply& reply, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + px(kServedRow)};
  const bool selected = reply.id() == view.served.watched;
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::SetNextItemAllowOverlap();
  const bool pressed = ImGui::InvisibleButton("Watch", {width, px(kServedRow)}, ImGuiButtonFlags_EnableNav);
  const bool wants_menu = ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right);
  if (ImGui::IsItemFocused() && ImGui::IsKeyPressed(ImGuiKey_Delete, false))
    sink.post(ServedCommand(DropServed{reply.id()}));
  if (pressed) sink.post(ServedCommand(WatchServed{reply.id()}));
  const bool hovered =
      ImGui::IsPopupOpen(kServedMenu) || (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(a, b));
  Colour fill = selected ? t.accent_bg : 0;
  if (hovered) fill = mix(selected ? t.accent_bg : t.panel, t.text, kHoverMix);
  if (fill) list->AddRectFilled({a.x + px(6), a.y + px(1)}, {b.x - px(6), b.y - px(1)}, fill, px(5));
  const float x = a.x + px(kServedMargin + 12), right = b.x - px(kServedMargin + kServedMore + 4);
  list->AddCircleFilled({a.x + px(kServedMargin + 3), a.y + px(14)}, px(3), served_colour(reply));
  draw_text_middle(list, x, a.y + px(14), Type::base, t.text, elided(Type::base, served_title(reply), right - x));
  draw_text_middle(list, x, a.y + px(32), Type::caption, t.text3,
                   elided(Type::caption, served_words(reply), right - x));
  const ImVec2 at = {b.x - px(kServedMargin + kServedMore), a.y + px(8)};
  ImGui::SetCursorScreenPos(at);
  const bool more = ImGui::InvisibleButton("More", {px(kServedMore), px(kServedMore)}, ImGuiButtonFlags_EnableNav);
  if (hovered || ImGui::IsItemHovered() || (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible))
    draw_icon(list, Icon::more, {at.x + px(kServedMore) * 0.5f, at.y + px(kServedMore) * 0.5f}, px(16), t.text2);
  tooltip("Pause, stop, record or keep this request");
  if (more || wants_menu) ImGui::OpenPopup(kServedMenu);
  draw_served_menu(view, reply, sink);
  ImGui::SetCursorScreenPos({a.x, b.y});
  ImGui::Dummy({0, 0});
  return pressed;
}

}  // namespace

float served_list_height(const ViewModel& view) {
  const ServedState& state = view.served;
  if (!state.settings.on && state.replies.empty()) return 0;
  return px(kServedHead) + px(kServedRow) * static_cast<float>(state.replies.size());
}

bool draw_served_list(const ViewModel& view, CommandSink& sink, ImVec2 size) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  draw_served_head(view, sink, size.x);
  if (view.served.replies.empty()) return false;
  ImGui::SetCursorScreenPos({a.x, a.y + px(kServedHead)});
  bool chosen = false;
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const float room = std::max(px(kServedRow), size.y - px(kServedHead));
  if (ImGui::BeginChild("Served requests", {size.x, room}, ImGuiChildFlags_NavFlattened)) {
    for (const ServedReply& reply : view.served.replies) {
      ImGui::PushID(std::to_string(reply.id()).c_str());
      chosen |= draw_served_row(view, reply, sink, ImGui::GetContentRegionAvail().x);
      ImGui::PopID();
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  return chosen;
}

void draw_served_bar(const ViewModel& view, const ServedReply& reply, CommandSink& sink, float width, float height) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + height};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  const float x = a.x + px(kServedPadding), room = width - px(kServedPadding) * 2;
  const std::string who = first_fitting(Type::base_semibold, {"Asked by " + reply.client, "Served"}, room - px(12));
  list->AddCircleFilled({x + px(4), a.y + px(18)}, px(4), served_colour(reply));
  draw_text_middle(list, x + px(14), a.y + px(18), Type::base_semibold, t.text, who);
  const std::string words = reply.problem.empty() ? served_words(reply) : reply.problem;
  draw_text_middle(list, x, a.y + px(38), Type::secondary, t.text2, elided(Type::secondary, words, room));
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, px(52)});
  tooltip((reply.path + ", asked by " + reply.client + "\n" + words +
           (reply.recorded ? "\nRecorded in " + reply.recording : ""))
              .c_str());
  ButtonSpec back{"Back to your chat", Icon::left, ButtonKind::line};
  back.tooltip = "The request goes on; your own chat is as you left it";
  const float y = b.y - px(28 + 10), side = px(28);
  if (button_size(back).x + px(8) + side * 3 > room) back.words = "Back";
  ImGui::SetCursorScreenPos({x, y});
  if (button(back)) sink.post(ServedCommand(WatchServed{}));
  const float left = room - button_size(back).x - px(8);
  const bool acts = !reply.over && !reply.stopping, all = acts && left >= side * 3;
  if (left >= side) {
    ImGui::SetCursorScreenPos({x + room - side * (all ? 3.0f : 1.0f), y});
    if (all) {
      if (icon_button("Pause or go on", reply.paused ? Icon::play : Icon::pause,
                      reply.paused ? "Lets this request go on" : "Gives this request no passes until it goes on"))
        sink.post(ServedCommand(HoldServed{reply.id(), !reply.paused}));
      ImGui::SameLine(0, 0);
      if (icon_button("Stop this request", Icon::stop, "Ends this request; the client gets an error"))
        sink.post(ServedCommand(EndServed{reply.id()}));
      ImGui::SameLine(0, 0);
    }
    if (icon_button("More of this request", Icon::more, "Record it, keep it as a chat, and more"))
      ImGui::OpenPopup(kServedMenu);
    draw_served_menu(view, reply, sink);
  }
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, height});
}

}  // namespace canopy::app
