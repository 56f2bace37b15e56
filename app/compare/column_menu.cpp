#include "app/compare/column_menu.h"

#include <imgui_stdlib.h>

#include <algorithm>

#include "app/compare/compare_figures.h"
#include "app/look/widgets.h"
#include "app/models/device_words.h"

namespace canopy::app {
namespace {

constexpr const char* kColumnMenu = "Column menu";
constexpr float kMenuWidth = 320;

void menu_heading(const char* words) {
  ImGui::Dummy({0, px(4)});
  label(Type::caption_semibold, colours().text3, words);
}

/// A text box over the whole width. True when what was typed is to be taken.
bool typed(const char* id, const char* hint, std::string& text, float width) {
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(width);
  ImGui::InputTextWithHint(id, hint, &text, ImGuiInputTextFlags_ElideLeft);
  const bool done = ImGui::IsItemDeactivatedAfterEdit();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  return done;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

}  // namespace

void ColumnMenu::open(const ViewModel& view, size_t column, ImVec2 at) {
  column_ = column;
  at_ = at;
  opening_ = true;
  const ComparisonColumn& asked = view.comparison.compare_setup.columns[column];
  budget_ = static_cast<int>(asked.way.budget > 0 ? asked.way.budget : 16);
  model_ = asked.model;
  drafter_ = asked.drafter;
  server_ = asked.server;
}

void ColumnMenu::draw_ways(ComparisonColumn& column, float width) {
  const WayToDecode ways[] = {{DecodeMode::ar, 0},
                              {DecodeMode::chain, 0},
                              {DecodeMode::tree, static_cast<uint32_t>(budget_)},
                              {DecodeMode::adaptive, 0}};
  const char* ids[] = {"AR", "Chain", "Tree", "Adaptive"};
  menu_heading("Way to decode");
  for (size_t i = 0; i < std::size(ways); ++i) {
    const bool on = column.way.mode == ways[i].mode;
    if (menu_row(ids[i], way_title(ways[i]), "", on, column.server.empty(), width)) column.way = ways[i];
    tooltip(way_subtitle(ways[i]).c_str());
  }
  if (column.way.mode != DecodeMode::tree) return;
  ImGui::SetNextItemWidth(width);
  if (ImGui::SliderInt("##budget", &budget_, 1, static_cast<int>(kMostBudget), "%d drafted nodes",
                       ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp))
    column.way.budget = static_cast<uint32_t>(budget_);
}

void ColumnMenu::draw_subject(const ViewModel& view, ComparisonColumn& column, float width) {
  menu_heading("Device");
  if (menu_row("Loaded", "That of the loaded model", "", column.device.empty(), true, width)) column.device.clear();
  for (const DeviceChoice& device : view.devices) {
    ImGui::PushID(device.selector.c_str());
    const std::string name = without_brackets(device.name);
    if (menu_row(name.c_str(), elided(Type::base, name, width - px(48)), "", column.device == device.selector,
                 device.usable, width))
      column.device = device.selector;
    ImGui::PopID();
  }
  menu_heading("Model and drafter, where they are other ones");
  if (typed("##model", "Path of another model", model_, width)) column.model = trimmed(model_);
  if (typed("##drafter", "Path of another drafter", drafter_, width)) column.drafter = trimmed(drafter_);
  menu_heading("Or an OpenAI-compatible server: speed and text alone");
  if (typed("##server", "http://127.0.0.1:8000/v1", server_, width)) {
    column.server = trimmed(server_);
    if (!column.server.empty()) {
      column.way = {};
      column.device.clear();
      column.drafter.clear();
    }
  }
}

void ColumnMenu::draw_ends(const ViewModel& view, CommandSink& sink, float width) {
  const CompareSetup& setup = view.comparison.compare_setup;
  menu_heading("Columns");
  CompareSetup next = setup;
  if (menu_row("Add a column", "Add a column like this", "", false, setup.columns.size() < kMostColumns, width)) {
    next.columns.insert(next.columns.begin() + static_cast<std::ptrdiff_t>(column_), setup.columns[column_]);
    sink.post(ComparisonCommand(SetCompareSetup{next}));
    ImGui::CloseCurrentPopup();
  }
  if (menu_row("Remove this column", "Remove this column", "", false, setup.columns.size() > kLeastColumns, width)) {
    next.columns.erase(next.columns.begin() + static_cast<std::ptrdiff_t>(column_));
    sink.post(ComparisonCommand(SetCompareSetup{next}));
    ImGui::CloseCurrentPopup();
  }
}

void ColumnMenu::draw(const ViewModel& view, CommandSink& sink) {
  const CompareSetup& setup = view.comparison.compare_setup;
  if (column_ >= setup.columns.size()) return;
  if (opening_) ImGui::OpenPopup(kColumnMenu);
  opening_ = false;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = px(kMenuWidth);
  const float x = std::min(at_.x, viewport->Pos.x + viewport->Size.x - width - px(24));
  ImGui::SetNextWindowPos({std::max(viewport->Pos.x, x), at_.y});
  ImGui::SetNextWindowSizeConstraints(
      {0, 0}, {width + px(16), std::max(px(80), viewport->Pos.y + viewport->Size.y - at_.y - px(8))});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kColumnMenu)) {
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, px(3)});
    ComparisonColumn column = setup.columns[column_];
    draw_ways(column, width);
    draw_subject(view, column, width);
    if (!(column == setup.columns[column_])) {
      CompareSetup next = setup;
      next.columns[column_] = column;
      sink.post(ComparisonCommand(SetCompareSetup{next}));
    } else {
      draw_ends(view, sink, width);
    }
    ImGui::PopStyleVar();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
