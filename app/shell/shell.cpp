#include "app/shell/shell.h"

#include <imgui_internal.h>

#include <utility>

#include "app/charts/budget_panel.h"
#include "app/charts/cost_panels.h"
#include "app/charts/round_table_panel.h"
#include "app/charts/statistics_panel.h"
#include "app/charts/timeline_panel.h"
#include "app/chat/chat_list.h"
#include "app/chat/chat_panel.h"
#include "app/compare/compare_panel.h"
#include "app/compare/sweep_panel.h"
#include "app/shell/models_page.h"
#include "app/shell/screen_regions.h"
#include "app/shell/start_panel.h"
#include "app/tree/tree_panel.h"
#include "app/ui/actions.h"
#include "app/ui/bars.h"
#include "app/ui/look.h"
#include "app/ui/panel.h"

namespace canopy::app {
namespace {

constexpr float kTopBar = 48;
constexpr float kStatusBar = 28;

constexpr ImGuiWindowFlags kDocked = ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoScrollbar |
                                     ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoFocusOnAppearing;

void draw_in(Panel& panel, ImVec2 pos, ImVec2 size, Colour background, const ViewModel& view, CommandSink& sink) {
  draw_fixed(panel.name(), pos, size, background, [&] { panel.draw(view, sink); });
}

std::vector<DockedWindow> windows_of(const std::vector<DockedPanel>& panels) {
  std::vector<DockedWindow> windows;
  for (const DockedPanel& each : panels) windows.push_back({each.panel->name(), each.place});
  return windows;
}

/// Brings the tab of a docked window to the front. False if the window has no tab bar yet.
bool select_tab(const ImGuiWindow& window) {
  ImGuiTabBar* bar = window.DockNode ? window.DockNode->TabBar : nullptr;
  if (!bar || !ImGui::TabBarFindTabByID(bar, window.TabId)) return false;
  bar->NextSelectedTabId = window.TabId;
  return true;
}

/// The menu of a panel's tab.
void draw_tab_menu(const char* name, CommandSink& sink) {
  if (!ImGui::BeginPopupContextItem("Tab menu")) return;
  if (ImGui::MenuItem("Close panel")) sink.post(ShellCommand(ShowPanel{name, false}));
  if (ImGui::MenuItem("Reset layout")) sink.post(ShellCommand(ResetLayout{}));
  ImGui::EndPopup();
}

/// Makes every panel, in the order of tabs.
std::vector<DockedPanel> make_docked_panels() {
  std::vector<DockedPanel> panels;
  // One line for each panel. Of the panels of one place the first is in front.
  panels.push_back({std::make_unique<ChatPanel>(), DockPlace::left});
  panels.push_back({std::make_unique<HistoryPanel>(), DockPlace::left});
  panels.push_back({std::make_unique<TreePanel>(), DockPlace::centre});
  panels.push_back({std::make_unique<RoundTablePanel>(), DockPlace::centre});
  panels.push_back({std::make_unique<BudgetPanel>(), DockPlace::below});
  panels.push_back({std::make_unique<ResidualsPanel>(), DockPlace::below});
  panels.push_back({std::make_unique<RooflinePanel>(), DockPlace::below});
  panels.push_back({std::make_unique<StatisticsPanel>(), DockPlace::right});
  panels.push_back({std::make_unique<KvPanel>(), DockPlace::right});
  panels.push_back({std::make_unique<CalibrationPanel>(), DockPlace::right});
  panels.push_back({std::make_unique<LogPanel>(), DockPlace::right});
  panels.push_back({std::make_unique<TimelinePanel>(), DockPlace::bottom});
  return panels;
}

}  // namespace

Shell::Shell(const SavedLayout& saved)
    : status_bar_(std::make_unique<StatusBar>()),
      start_(std::make_unique<StartPanel>()),
      compare_(std::make_unique<ComparePanel>()),
      sweep_(std::make_unique<SweepPanel>()),
      models_(std::make_unique<ModelsPage>()),
      docked_(make_docked_panels()),
      docks_(windows_of(docked_), saved),
      closed_(saved.closed),
      shown_closed_(saved.closed) {
  std::vector<std::string> names;
  for (const DockedPanel& each : docked_) names.push_back(each.panel->name());
  top_bar_ = std::make_unique<TopBar>(names);
  palette_.set_panels(std::move(names));
}

Shell::~Shell() = default;

void Shell::prepare(const ViewModel& view, float scale) {
  if (resets_ != view.shell.layout_resets) docks_.reset();
  resets_ = view.shell.layout_resets;
  const ImVec2 display = ImGui::GetIO().DisplaySize;
  docks_.prepare({display.x, display.y - (kTopBar + kStatusBar) * scale}, scale);
}

void Shell::draw(const ViewModel& view, CommandSink& sink) {
  const Theme& t = colours();
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 origin = viewport->Pos, size = viewport->Size;
  const float top = px(kTopBar), bottom = px(kStatusBar);
  const ImVec2 area_pos = {origin.x, origin.y + top}, area = {size.x, size.y - top - bottom};
  if (presses_ != view.shell.presses) want_press(view.shell.pressed);
  presses_ = view.shell.presses;
  handle_shortcuts(view, popup_ || view.shell.tour.shown, sink);
  regions_.clear();
  regions_.push_back({top_bar_->name(), origin, {size.x, top}});
  draw_in(*top_bar_, origin, {size.x, top}, t.panel, view, sink);
  Panel* page = view.shell.page == WindowPage::compare  ? compare_.get()
                : view.shell.page == WindowPage::sweep  ? sweep_.get()
                : view.shell.page == WindowPage::models ? models_.get()
                                                        : nullptr;
  const bool start = page == nullptr && StartPanel::wanted(view);
  const bool rounds = page == nullptr && !start, watch = rounds && view.shell.layout == WindowLayout::watch,
             what_if = rounds && view.shell.layout == WindowLayout::what_if;
  for (const std::string& name : shown_closed_)
    if (!view.shell.closed.contains(name)) docks_.restore(name.c_str());
  shown_closed_ = view.shell.closed;
  if (docks_.ready()) docks_.draw(area_pos, area, look().scale, rounds && !watch && !what_if);
  if (page != nullptr) {
    regions_.push_back({page->name(), area_pos, area});
    draw_in(*page, area_pos, area, t.back, view, sink);
  } else if (start) {
    regions_.push_back({start_->name(), area_pos, area});
    draw_in(*start_, area_pos, area, t.back, view, sink);
  } else if (watch) {
    watch_.draw(view, sink, top, regions_);
  } else if (what_if) {
    what_if_.draw(view, sink, top, regions_);
  } else if (docks_.ready()) {
    if (raises_ != view.shell.raises) raising_ = view.shell.raised;
    raises_ = view.shell.raises;
    // Over a recording or what a client asked for there is no box of messages.
    if (view.own_chat() && !in_front("Chat") && !view.shell.tour.shown && take_typed_ahead())
      sink.post(ShellCommand(ShowPanel{"Chat", true}));
    for (DockedPanel& each : docked_)
      if (!view.shell.closed.contains(each.panel->name())) draw_docked(each, view, sink);
  }
  const bool with_status = !watch && !what_if;
  if (with_status) regions_.push_back({status_bar_->name(), {origin.x, origin.y + size.y - bottom}, {size.x, bottom}});
  if (with_status) draw_in(*status_bar_, {origin.x, origin.y + size.y - bottom}, {size.x, bottom}, t.back, view, sink);
  if (view.help_shown) draw_help(sink);
  palette_.draw(view, sink);
  chat_files_.draw(view, sink);
  record_box_.draw(view, sink);
  report_box_.draw(view, sink);
  share_box_.draw(view, sink);
  own_device_box_.draw(view, sink);
  serve_box_.draw(view, sink);
  engine_box_.draw(view, sink);
  draw_browser(view, sink);
  const int moves = view.shell.focus_moves - std::exchange(focus_moves_, view.shell.focus_moves);
  if (moves != 0 && !popup_ && !view.shell.regions_shown) focus_.move(moves, regions_);
  focus_.draw(regions_);
  if (view.shell.regions_shown) draw_regions(regions_, sink);
  popup_ = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
}

void Shell::draw_browser(const ViewModel& view, CommandSink& sink) {
  if (view.path_box_shown && !browser_.is_open()) {
    const bool knows = view.model_path.empty() && !view.models.recent.empty();
    browser_.open("Open a model or a recording", PathFilter::models,
                  knows ? view.models.recent.front() : view.model_path);
  } else if (!view.path_box_shown && browser_.is_open()) {
    browser_.close();  // a model was opened otherwise, as by dropping it on the window
  }
  const std::optional<std::string> path = browser_.draw();
  if (path) sink.post(OpenModel{*path});
  if (view.path_box_shown && !browser_.is_open()) sink.post(ShowPathBox{false});
}

void Shell::draw_docked(DockedPanel& docked, const ViewModel& view, CommandSink& sink) {
  const char* name = docked.panel->name();
  const bool raise = raising_ == name;
  // Taking the focus would close an open menu: then only the tab is brought to the front, once there is one.
  const bool menu = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (raise && !menu) {
    ImGui::SetNextWindowFocus();
    raising_.clear();
  }
  ImGui::SetNextWindowDockID(docks_.place_of(name), ImGuiCond_FirstUseEver);
  const ImGuiWindow* window = ImGui::FindWindowByName(name);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleColor(ImGuiCol_Text, window && window->DockTabIsVisible ? colours().text : colours().text3);
  bool visible = false;
  {
    const TabStyle tabs;
    visible = ImGui::Begin(name, nullptr, kDocked);
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  if (raise && menu && select_tab(*ImGui::GetCurrentWindow())) raising_.clear();
  draw_tab_menu(name, sink);
  if (visible) regions_.push_back({name, ImGui::GetWindowPos(), ImGui::GetWindowSize()});
  if (visible) docked.panel->draw(view, sink);
  ImGui::End();
}

SavedLayout Shell::layout(const ViewModel& view) {
  return {docks_.now(), view.shell.closed};
}

std::optional<SavedLayout> Shell::layout_changed(const ViewModel& view) {
  auto docks = docks_.changed();
  if (!docks && closed_ == view.shell.closed) return std::nullopt;
  closed_ = view.shell.closed;
  return SavedLayout{docks ? *std::move(docks) : docks_.now(), closed_};
}

}  // namespace canopy::app
