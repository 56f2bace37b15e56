#include "app/chat/history_panel.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>

#include "app/base/local_time.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kListMargin = 12;
constexpr float kChatRow = 52;

/// "14:05" for today's chats, else the date; in the user's time.
std::string when(int64_t changed_ms, int64_t now_ms) {
  const std::string then = local_time(changed_ms), now = local_time(now_ms);
  if (then.empty()) return "";
  return then.substr(0, 10) == now.substr(0, 10) ? then.substr(11, 5) : then.substr(0, 10);
}

void draw_sentence(ImVec2 origin, ImVec2 size, const char* sentence) {
  const ImVec2 text = text_size(Type::chat, sentence);
  draw_text(ImGui::GetWindowDrawList(),
            {origin.x + std::max(px(12), (size.x - text.x) * 0.5f), origin.y + size.y * 0.3f}, Type::chat,
            colours().text2, sentence);
  ImGui::Dummy(size);
}

}  // namespace

void HistoryPanel::draw(const ViewModel& view, CommandSink& sink) {
  const ImVec2 a = ImGui::GetCursorScreenPos(), area = ImGui::GetContentRegionAvail();
  const float width = area.x - px(kListMargin) * 2;
  ImGui::SetCursorScreenPos({a.x + px(kListMargin), a.y + px(8)});
  ImGui::SetNextItemWidth(width);
  if (ImGui::InputTextWithHint("##Search all chats", "Search all chats", &search_)) sink.post(SearchChats{search_});
  float y = a.y + px(46);
  if (view.chat.deleted) {
    ImGui::SetCursorScreenPos({a.x + px(kListMargin), y});
    ButtonSpec undo{"Undo delete", Icon::none, ButtonKind::line};
    undo.tooltip = "Bring the deleted chat back";
    if (button(undo)) sink.post(UndoDelete{});
    y += px(36);
  }
  ImGui::SetCursorScreenPos({a.x, y});
  const ImVec2 size = {area.x, std::max(px(40), a.y + area.y - y)};
  if (view.chat.listings.empty()) {
    draw_sentence({a.x, y}, size,
                  !view.chat.kept            ? "Chats are not saved."
                  : view.chat.search.empty() ? "No chat yet."
                                             : "No chat has these words.");
    return;
  }
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  if (ImGui::BeginChild("Chats", size)) {
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(view.chat.listings.size()), px(kChatRow));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const ChatListing& listing = view.chat.listings[static_cast<size_t>(i)];
        ImGui::PushID(listing.id.c_str());
        draw_row(view, listing, sink, ImGui::GetContentRegionAvail().x);
        ImGui::PopID();
      }
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

void HistoryPanel::draw_row(const ViewModel& view, const ChatListing& listing, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + px(kChatRow)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool selected = listing.id == view.messages.id;
  ImGui::SetNextItemAllowOverlap();
  const bool pressed = ImGui::InvisibleButton("Open chat", {width, px(kChatRow)}, ImGuiButtonFlags_EnableNav);
  const bool hovered = ImGui::IsItemHovered();
  if (pressed) {
    if (!selected || view.replaying()) sink.post(OpenChat{listing.id});
    sink.post(ShellCommand(ShowPanel{"Chat", true}));
  }
  Colour fill = selected ? t.accent_bg : 0;
  if (hovered) fill = mix(selected ? t.accent_bg : t.panel, t.text, kHoverMix);
  if (fill) list->AddRectFilled({a.x + px(6), a.y + px(2)}, {b.x - px(6), b.y - px(2)}, fill, px(5));
  const float x = a.x + px(kListMargin), right = b.x - px(kListMargin) - px(32);
  draw_text_middle(list, x, a.y + px(17), Type::base, t.text, elided(Type::base, listing.title, right - x));
  const std::string about = when(listing.changed_ms, view.chat.now_ms) + "  " + std::to_string(listing.messages) +
                            (listing.messages == 1 ? " message" : " messages");
  const bool found = !listing.excerpt.empty();
  draw_text_middle(list, x, a.y + px(36), found ? Type::caption : Type::mono_caption, t.text3,
                   elided(found ? Type::caption : Type::mono_caption, found ? listing.excerpt : about, right - x));
  ImGui::SetCursorScreenPos({b.x - px(kListMargin) - px(28), a.y + px(12)});
  ButtonSpec remove{"Delete", Icon::trash};
  remove.show_label = false;
  remove.tooltip = "Delete this chat; it can be brought back";
  if (button(remove)) sink.post(DeleteChat{listing.id});
  ImGui::SetCursorScreenPos({a.x, b.y});
  ImGui::Dummy({0, 0});
}

}  // namespace canopy::app
