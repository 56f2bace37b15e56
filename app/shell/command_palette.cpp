#include "app/shell/command_palette.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "app/look/widgets.h"
#include "app/models/device_words.h"
#include "app/panels/actions.h"
#include "engine/text/case_folding.h"

namespace canopy::app {
namespace {

constexpr const char* kPalettePopup = "Commands";
constexpr float kPaletteWidth = 560, kPitch = 30;
constexpr int kMostLines = 12;

/// Letters and digits; bytes of letters beyond ASCII are taken for such.
bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte);
}

bool starts_a_word(const std::string& line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1))
    if (at == 0 || !in_word(line[at - 1])) return true;
  return false;
}

bool every_word_starts_one(const std::string& line, std::string_view query) {
  while (!query.empty()) {
    const size_t end = query.find(' ');
    const std::string_view word = query.substr(0, end);
    if (!word.empty() && !starts_a_word(line, word)) return false;
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
  }
  return true;
}

bool letters_in_order(const std::string& line, std::string_view query) {
  size_t at = 0;
  for (const char c : query) {
    if (c == ' ') continue;
    at = line.find(c, at);
    if (at == std::string::npos) return false;
    ++at;
  }
  return true;
}

}  // namespace

std::vector<CommandPalette::Line> CommandPalette::matching(const ViewModel& view) const {
  std::vector<std::pair<int, Line>> found;
  auto offer = [&](std::string words, std::string keys, UiCommand command) {
    if (const int score = palette_match(query_, words))
      found.push_back({score, {std::move(words), std::move(keys), std::move(command)}});
  };
  for (const Action& action : actions())
    if (auto command = action.command(view)) offer(action.name, action.keys, *std::move(command));
  for (const std::string& panel : panels_) {
    const bool closed = view.shell.closed.contains(panel);
    offer((closed ? "Open panel: " : "Close panel: ") + panel, "", ShellCommand(ShowPanel{panel, closed}));
    if (!closed) offer("Go to panel: " + panel, "", ShellCommand(ShowPanel{panel, true}));
  }
  for (const DeviceChoice& device : view.devices)
    if (device.usable)
      offer("Use device: " + device.name + (device.same_gpu.empty() ? "" : " (" + device.backend_title + ")"), "",
            ChooseDevice{device.selector});
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Line> lines;
  for (auto& [score, line] : found) lines.push_back(std::move(line));
  return lines;
}

void CommandPalette::close(CommandSink& sink) {
  ImGui::CloseCurrentPopup();
  open_ = false;
  sink.post(ShellCommand(ShowPalette{false}));
}

void CommandPalette::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.shell.palette_shown) {
    open_ = false;
    return;
  }
  const bool opening = !open_;
  if (opening) {
    query_.clear();
    chosen_ = 0;
    open_ = true;
    ImGui::OpenPopup(kPalettePopup);
  }
  place_dialog(kPaletteWidth);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (!ImGui::BeginPopup(kPalettePopup)) {
    ImGui::PopStyleVar();
    sink.post(ShellCommand(ShowPalette{false}));  // closed by a click outside
    return;
  }
  if (opening) ImGui::SetKeyboardFocusHere();
  draw_input();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false))
    close(sink);
  else
    draw_lines(matching(view), sink);
  ImGui::EndPopup();
  ImGui::PopStyleVar();
}

void CommandPalette::draw_input() {
  push_type(Type::chat);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(-1);
  const std::string before = query_;
  entered_ = ImGui::InputTextWithHint("##command", "Type a command", &query_, ImGuiInputTextFlags_EnterReturnsTrue);
  if (query_ != before) chosen_ = 0;
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

void CommandPalette::draw_lines(const std::vector<Line>& lines, CommandSink& sink) {
  const Theme& t = colours();
  const int count = static_cast<int>(lines.size());
  moved_ = false;
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++chosen_, moved_ = true;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --chosen_, moved_ = true;
  chosen_ = std::clamp(chosen_, 0, std::max(0, count - 1));
  const float pitch = px(kPitch), room = ImGui::GetMainViewport()->Size.y * 0.6f;
  const float height = pitch * static_cast<float>(std::clamp(count, 1, kMostLines));
  ImGui::PushStyleColor(ImGuiCol_ChildBg, with_alpha(t.raised, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::BeginChild("Lines", {0, std::min(height, room)}, ImGuiChildFlags_None, ImGuiWindowFlags_NoNav);
  if (count == 0)
    draw_text_middle(ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos().x + px(10),
                     ImGui::GetCursorScreenPos().y + pitch * 0.5f, Type::base, t.text3, "No such command");
  bool done = false;
  for (int i = 0; i < count; ++i) {
    const Line& line = lines[static_cast<size_t>(i)];
    const float width = ImGui::GetContentRegionAvail().x;
    const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + pitch};
    const bool clicked = ImGui::InvisibleButton(line.words.c_str(), {width, pitch});
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (i == chosen_)
      list->AddRectFilled(a, b, t.accent_bg, px(4));
    else if (ImGui::IsItemHovered())
      list->AddRectFilled(a, b, mix(t.raised, t.text, kHoverMix), px(4));
    const float keys = text_size(Type::mono, line.keys).x, middle = a.y + pitch * 0.5f;
    draw_text_middle(list, a.x + px(10), middle, Type::base, t.text,
                     elided(Type::base, line.words, width - keys - px(30)));
    draw_text_middle(list, b.x - keys - px(10), middle, Type::mono, t.text2, line.keys);
    if (i == chosen_ && moved_) ImGui::SetScrollHereY();
    if (clicked || (entered_ && i == chosen_)) {
      sink.post(line.command);
      done = true;
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  if (done) close(sink);
}

int palette_match(std::string_view query_text, std::string_view line_text) {
  const std::string query = fold_case(query_text), line = fold_case(line_text);
  if (query.empty()) return 1;
  if (line.starts_with(query)) return 4;
  if (every_word_starts_one(line, query)) return 3;
  if (line.find(query) != std::string::npos) return 2;
  return letters_in_order(line, query) ? 1 : 0;
}

void draw_help(CommandSink& sink) {
  const Theme& t = colours();
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float pitch = px(26), padding = px(14);
  const float width = std::min(px(264), viewport->Size.x - px(24));
  const auto with_keys = std::ranges::count_if(actions(), [](const Action& a) { return a.chord != 0; });
  const float height = padding * 2 + px(28) + pitch * (static_cast<float>(with_keys) + 4);
  const ImVec2 size = {width, std::min(height, viewport->Size.y - px(28 + 48 + 16))};
  ImGui::SetNextWindowPos(
      {viewport->Pos.x + viewport->Size.x - size.x - px(12), viewport->Pos.y + viewport->Size.y - size.y - px(36)});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, t.raised);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(6));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {padding, padding});
  ImGui::Begin("Help", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor(2);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float inner = width - padding * 2;
  draw_text(list, a, Type::chat_semibold, t.text, "Keyboard");
  float y = a.y + px(32);
  auto row = [&](const char* what, const char* keys) {
    draw_text_middle(list, a.x, y + pitch * 0.5f, Type::base, t.text2, what);
    draw_text_middle(list, a.x + inner - text_size(Type::mono, keys).x, y + pitch * 0.5f, Type::mono, t.text, keys);
    y += pitch;
  };
  row("Send", "Enter");
  row("New line", "Shift+Enter");
  row("Scroll", "PgUp, PgDn");
  row("Copy what is selected", "Ctrl+C");
  for (const Action& action : actions())
    if (action.chord) row(action.name, action.keys);
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({inner, y - a.y});
  ButtonSpec close{"Close help", Icon::close};
  close.show_label = false;
  ImGui::SetCursorScreenPos({a.x + inner - px(26), a.y - px(6)});
  if (button(close)) sink.post(ShowHelp{false});
  ImGui::End();
}

}  // namespace canopy::app
