#include "app/bars/mode_segment.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "app/look/widgets.h"
#include "app/panels/term_words.h"
#include "app/state/drafting.h"

namespace canopy::app {
namespace {

constexpr float kSegmentHeight = 32, kSegmentPadding = 2, kItemPadding = 12, kSegmentGap = 6;
constexpr DecodeMode kModes[] = {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive};
constexpr uint32_t kBudgets[] = {4, 8, 16, 32, 64, 128, 256, 512, 1024};
constexpr const char* kBudgetPopup = "Tree size";
constexpr const char* kModePopup = "Mode menu";

DecodeMode mode_now(const ViewModel& view) {
  return view.model ? mode_for(view.drafting, *view.model) : view.drafting.value_or(DecodeMode::adaptive);
}

bool drafts(const ViewModel& view) {
  return view.model && !view.model->drafter.empty();
}

std::string why(const ViewModel& view, DecodeMode mode) {
  if (mode != DecodeMode::ar && !drafts(view)) return "Needs a drafter for this model";
  return std::string(mode_detail(mode)) + "\nThe text is the same in every mode";
}

float item_width(DecodeMode mode) {
  return std::ceil(text_size(Type::base_semibold, mode_title(mode)).x) + px(kItemPadding) * 2;
}

std::string budget_words(const ViewModel& view) {
  return std::to_string(view.shell.tree_budget);
}

bool shows_budget(const ViewModel& view) {
  return drafts(view) && mode_now(view) == DecodeMode::tree;
}

void draw_item(const ViewModel& view, CommandSink& sink, DecodeMode mode, ImVec2 a) {
  const Theme& t = colours();
  const bool on = mode == mode_now(view), possible = mode == DecodeMode::ar || drafts(view);
  const ImVec2 size = {item_width(mode), px(kSegmentHeight - 2 * kSegmentPadding)};
  ImGui::SetCursorScreenPos(a);
  ImGui::BeginDisabled(!possible);
  if (ImGui::InvisibleButton(mode_title(mode), size, ImGuiButtonFlags_EnableNav)) sink.post(SetDrafting{mode});
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 b = {a.x + size.x, a.y + size.y};
  if (on)
    list->AddRectFilled(a, b, ImGui::GetColorU32(t.accent), px(4));
  else if (possible && ImGui::IsItemHovered())
    list->AddRectFilled(a, b, mix(t.card, t.text, kHoverMix), px(4));
  const Type type = on ? Type::base_semibold : Type::base;
  draw_text_middle(list, a.x + (size.x - text_size(type, mode_title(mode)).x) * 0.5f, a.y + size.y * 0.5f, type,
                   on ? t.on_accent : t.text2, mode_title(mode));
  ImGui::EndDisabled();
  term_tooltip(mode_title(mode), why(view, mode));
}

void draw_budget_menu(const ViewModel& view, CommandSink& sink) {
  const float width = std::min(px(260), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kBudgetPopup)) {
    label(Type::secondary, colours().text2, "Nodes drafted in every round");
    for (const uint32_t nodes : kBudgets) {
      ImGui::PushID(static_cast<int>(nodes));
      if (choice("nodes", grouped(nodes) + " nodes", "", nodes == view.shell.tree_budget, true, width)) {
        sink.post(ShellCommand(SetTreeBudget{nodes}));
        ImGui::CloseCurrentPopup();
      }
      ImGui::PopID();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_mode_menu(const ViewModel& view, CommandSink& sink) {
  const float width = std::min(px(340), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kModePopup)) {
    for (const DecodeMode mode : kModes) {
      const bool possible = mode == DecodeMode::ar || drafts(view);
      if (choice(mode_title(mode), mode_title(mode), mode_detail(mode), mode == mode_now(view), possible, width)) {
        sink.post(SetDrafting{mode});
        ImGui::CloseCurrentPopup();
      }
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace

float mode_segment_width(const ViewModel& view) {
  float width = px(kSegmentPadding) * 2;
  for (const DecodeMode mode : kModes) width += item_width(mode);
  if (shows_budget(view)) width += px(kSegmentGap) + picker_width("N", budget_words(view));
  return width;
}

void mode_segment(const ViewModel& view, CommandSink& sink) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  float width = px(kSegmentPadding) * 2;
  for (const DecodeMode mode : kModes) width += item_width(mode);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 b = {a.x + width, a.y + px(kSegmentHeight)};
  list->AddRectFilled(a, b, t.card, px(5));
  list->AddRect(a, b, t.line, px(5), std::max(1.0f, px(1)));
  float x = a.x + px(kSegmentPadding);
  for (const DecodeMode mode : kModes) {
    draw_item(view, sink, mode, {x, a.y + px(kSegmentPadding)});
    x += item_width(mode);
  }
  if (!shows_budget(view)) return;
  ImGui::SetCursorScreenPos({b.x + px(kSegmentGap), a.y});
  if (picker("Tree nodes", "N", budget_words(view), picker_width("N", budget_words(view))))
    ImGui::OpenPopup(kBudgetPopup);
  term_tooltip("N", "Nodes of the draft tree; Adaptive chooses them by itself");
  ImGui::SetNextWindowPos({b.x + px(kSegmentGap), a.y + px(kSegmentHeight) + px(4)});
  draw_budget_menu(view, sink);
}

float mode_picker_width(const ViewModel& view) {
  return picker_width("", mode_title(mode_now(view)));
}

void mode_picker(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  if (picker("Mode", "", mode_title(mode_now(view)), width)) ImGui::OpenPopup(kModePopup);
  tooltip(why(view, mode_now(view)).c_str());
  ImGui::SetNextWindowPos({a.x, a.y + px(kSegmentHeight) + px(4)});
  draw_mode_menu(view, sink);
}

}  // namespace canopy::app
