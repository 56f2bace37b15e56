#include "app/panels/path_browser.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/conversation/export_path.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/models/memory_table.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

constexpr float kBrowserWidth = 560, kListRow = 28, kListRows = 11, kLeastRows = 4, kAround = 200;

const char* filter_words(PathFilter filter) {
  switch (filter) {
    case PathFilter::models: return "Models and recordings";
    case PathFilter::chats: return "Chats (JSON)";
    default: return "";
  }
}

std::string facts_of(const FolderEntry& entry) {
  if (entry.folder) return entry.model ? "model" : "folder";
  return bytes_text(entry.bytes);
}

void draw_problem(const std::string& words, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_cross(list, {a.x + px(8), a.y + px(9)}, px(4), colours().rejected, px(2));
  TextBlock block;
  block.layout(words, Type::secondary, width - px(24));
  block.draw(list, {a.x + px(24), a.y}, words, Type::secondary, colours().text2, px(18));
  ImGui::Dummy({width, block.height(px(18))});
}

/// The folder to begin in, for a file or a folder that may be gone.
fs::path first_folder(const std::string& start) {
  std::error_code ignored;
  fs::path place = start;
  while (!place.empty() && !fs::is_directory(place, ignored)) {
    if (place == place.parent_path()) return typed_path("~");
    place = place.parent_path();
  }
  return place.empty() ? typed_path("~") : place;
}

}  // namespace

void PathBrowser::open(const char* title, PathFilter filter, const std::string& start) {
  title_ = title;
  opening_ = true;
  closing_ = false;
  wanted_ = filter;
  all_ = false;
  enter(first_folder(start).string());
}

void PathBrowser::enter(const std::string& folder) {
  list_ = list_folder(folder.empty() ? "/" : folder, all_ ? PathFilter::all : wanted_);
  path_ = list_.folder;
  problem_ = list_.problem;
  focus_list_ = true;
}

std::optional<std::string> PathBrowser::choose() {
  const fs::path path = typed_path(path_);
  std::error_code ignored;
  problem_ = path_.empty() ? "Choose a file, or type its path." : path_obstacle(path, wanted_);
  if (!problem_.empty()) return std::nullopt;
  const bool file = !fs::is_directory(path, ignored);
  if (file || wanted_ == PathFilter::folders || (wanted_ == PathFilter::models && holds_a_model(path))) {
    title_ = nullptr;
    return path.string();
  }
  enter(path.string());  // a folder that is no model: look into it
  return std::nullopt;
}

bool PathBrowser::draw_path(float width) {
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  ImGui::SetNextItemWidth(width);
  const bool entered = ImGui::InputTextWithHint("##path", "Path of a file or folder", &path_,
                                                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
  return entered;
}

/// Draws the list. True when a file in it was opened with a double click or Enter.
bool PathBrowser::draw_entries(float width, float height) {
  bool opened = false;
  std::string next;
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::BeginChild("Entries", {width, height}, ImGuiChildFlags_NavFlattened);
  const float room = ImGui::GetContentRegionAvail().x;
  const bool focus = std::exchange(focus_list_, false);
  if (focus) ImGui::SetScrollY(0);
  if (!list_.parent.empty()) {
    if (focus) ImGui::SetKeyboardFocusHere();
    if (menu_row("Folder above", "\u2191  Folder above", "", false, true, room)) next = list_.parent;
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(list_.entries.size()), px(kListRow));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const FolderEntry& entry = list_.entries[static_cast<size_t>(i)];
      const bool pressed = menu_row(entry.name.c_str(), entry.folder ? entry.name + "/" : entry.name, facts_of(entry),
                                    path_ == entry.path, true, room);
      if (!pressed) continue;
      if (entry.folder && !(entry.model && wanted_ == PathFilter::models)) {
        next = entry.path;
        continue;
      }
      // The second click, or Enter, opens what the first one chose.
      opened = path_ == entry.path || !ImGui::IsMouseReleased(ImGuiMouseButton_Left);
      path_ = entry.path;
      problem_.clear();
    }
  }
  if (list_.entries.empty() && list_.problem.empty()) label(Type::secondary, colours().text3, "Nothing to choose here");
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  const bool back = !ImGui::GetIO().WantTextInput && ImGui::IsKeyPressed(ImGuiKey_Backspace, false);
  if (back && !list_.parent.empty()) next = list_.parent;
  if (!next.empty()) enter(next);
  return opened;
}

std::optional<std::string> PathBrowser::draw_contents(float width) {
  label(Type::title, colours().text, title_);
  bool asked = draw_path(width);
  const float room = ImGui::GetMainViewport()->Size.y - px(kAround) - ImGui::GetWindowPos().y;
  const float height = std::clamp(room, px(kListRow) * kLeastRows, px(kListRow) * kListRows);
  asked |= draw_entries(width, height);
  ImGui::Dummy({0, px(2)});
  if (!problem_.empty()) draw_problem(problem_, width);
  if (list_.cut) label(Type::secondary, colours().text3, "More than 2,000 entries: type the path instead");
  ButtonSpec open{wanted_ == PathFilter::folders ? "Choose" : "Open", Icon::none, ButtonKind::primary};
  ButtonSpec cancel{"Cancel", Icon::none, ButtonKind::line};
  asked |= button(open);
  ImGui::SameLine(0, px(8));
  const bool left = button(cancel) || ImGui::IsKeyPressed(ImGuiKey_Escape, false);
  if (const std::string words = filter_words(wanted_); !words.empty()) {
    ButtonSpec all{"All files", all_ ? Icon::check : Icon::none};
    all.on = all_;
    const std::string tip = "Now: " + (all_ ? std::string("all files") : words);
    all.tooltip = tip.c_str();
    ImGui::SameLine(width - button_size(all).x + ImGui::GetStyle().WindowPadding.x);
    if (button(all)) {
      all_ = !all_;
      enter(list_.folder);
    }
  }
  if (left) {
    title_ = nullptr;
    return std::nullopt;
  }
  return asked ? choose() : std::nullopt;
}

std::optional<std::string> PathBrowser::draw() {
  if (!title_) return std::nullopt;
  const char* title = title_;
  if (std::exchange(opening_, false)) ImGui::OpenPopup(title);
  const float width = place_dialog(kBrowserWidth);
  std::optional<std::string> chosen;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  if (ImGui::BeginPopup(title)) {
    chosen = draw_contents(width - px(32));
    if (std::exchange(closing_, false)) title_ = nullptr;
    if (!title_) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  } else {
    title_ = nullptr;  // closed by a click outside
  }
  ImGui::PopStyleVar();
  return chosen;
}

}  // namespace canopy::app
