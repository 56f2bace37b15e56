#include "app/chat/chat_files.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/state/chat.h"
#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr const char* kPopup = "Chat files";
constexpr float kDialogWidth = 460, kDialogCaption = 68, kDialogRow = 28, kLine = 18;

void draw_caption(const char* words) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + px(kDialogRow) * 0.5f, Type::base, colours().text2, words);
  ImGui::SetCursorScreenPos({at.x + px(kDialogCaption), at.y});
}

bool text_box(const char* id, std::string& text, float width, bool focus = false) {
  if (focus) ImGui::SetKeyboardFocusHere();
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(width);
  const bool entered =
      ImGui::InputText(id, &text, ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  return entered;
}

/// Draws wrapped text with a sign before it: what will happen, or what failed.
void draw_remark(const std::string& words, bool failure, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const ImVec2 sign = {a.x + px(8), a.y + px(kLine) * 0.5f};
  if (failure)
    draw_cross(list, sign, px(4), t.rejected, px(2));
  else
    draw_triangle_sign(list, sign, px(14), t.bonus, t.raised);
  TextBlock block;
  block.layout(words, Type::secondary, width - px(24));
  block.draw(list, {a.x + px(24), a.y}, words, Type::secondary, t.text2, px(kLine));
  ImGui::Dummy({width, block.height(px(kLine))});
}

/// Draws the button that carries out the action and a Cancel button. True when the first was pressed.
bool draw_buttons(const char* does, const char* words, bool possible, CommandSink& sink) {
  ButtonSpec act{does, Icon::none, ButtonKind::primary}, cancel{"Cancel", Icon::none, ButtonKind::line};
  act.words = words;
  act.enabled = possible;
  const bool pressed = button(act);
  ImGui::SameLine(0, px(8));
  if (button(cancel)) sink.post(ChatCommand(ShowChatFiles{ChatFiles::closed}));
  return pressed;
}

}  // namespace

void ChatFilesDialog::draw(const ViewModel& view, CommandSink& sink) {
  const bool opening = open_ != view.chat.files;
  open_ = view.chat.files;
  if (open_ == ChatFiles::closed) return;
  if (opening) {
    suggest(view);
    focus_ = true;
    ImGui::OpenPopup(kPopup);
  }
  const float width = place_dialog(kDialogWidth);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  if (ImGui::BeginPopup(kPopup)) {
    if (!browser_.is_open() && ImGui::IsKeyPressed(ImGuiKey_Escape, false))
      sink.post(ChatCommand(ShowChatFiles{ChatFiles::closed}));
    if (open_ == ChatFiles::exporting)
      draw_export(view, sink, width - px(32));
    else
      draw_import(view, sink, width - px(32));
    ImGui::EndPopup();
  } else {
    sink.post(ChatCommand(ShowChatFiles{ChatFiles::closed}));  // closed by a click outside
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

void ChatFilesDialog::suggest(const ViewModel& view) {
  if (folder_.empty()) folder_ = documents_folder().string();
  const Conversation& chat = view.conversation();
  const uint64_t first = chat.empty() ? 0 : chat.front().id;
  const bool typed = !name_.empty() && name_ != suggested_;
  if (typed && named_for_ == first) return;
  named_for_ = first;
  name_ = suggested_ = export_name(chat, "");
}

/// Looks whether the file exists, only when the path has changed and not in every frame.
void ChatFilesDialog::look_for_file() {
  const std::filesystem::path path = export_path(folder_, name_, format_);
  if (looked_at_ == path.string()) return;
  looked_at_ = path.string();
  std::error_code ignored;
  exists_ = !name_.empty() && std::filesystem::exists(path, ignored);
}

bool ChatFilesDialog::path_box(const char* id, std::string& path, PathFilter wanted, float width, bool focus) {
  const bool folder = wanted == PathFilter::folders;
  ButtonSpec browse{folder ? "Browse folders" : "Browse files", Icon::folder, ButtonKind::line};
  browse.show_label = false;
  browse.height = kDialogRow;
  browse.tooltip = browse.label;
  const bool entered = text_box(id, path, width - button_size(browse).x - px(6), focus);
  ImGui::SameLine(0, px(6));
  // Tab goes from one text box to the next.
  ImGui::PushItemFlag(ImGuiItemFlags_NoTabStop, true);
  const bool browses = button(browse);
  ImGui::PopItemFlag();
  if (browses) browser_.open(folder ? "Choose a folder" : "Choose a chat", wanted, typed_path(path).string());
  if (auto chosen = browser_.draw()) path = *std::move(chosen);
  return entered;
}

void ChatFilesDialog::draw_export(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  label(Type::title, t.text, "Export chat");
  ImGui::Dummy({0, px(2)});
  draw_caption("Format");
  ButtonSpec markdown{"Markdown", Icon::none, ButtonKind::line}, json{"JSON", Icon::none, ButtonKind::line};
  markdown.height = json.height = kDialogRow;
  markdown.on = format_ == ExportFormat::markdown;
  json.on = !markdown.on;
  if (button(markdown)) format_ = ExportFormat::markdown;
  ImGui::SameLine(0, px(8));
  if (button(json)) format_ = ExportFormat::json;
  label(Type::secondary, t.text2,
        markdown.on ? "The messages on screen, as text" : "All branches, to be imported again");
  const float room = width - px(kDialogCaption);
  draw_caption("Folder");
  path_box("##folder", folder_, PathFilter::folders, room);
  draw_caption("Name");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const char* ending = ending_of(format_);
  const float ending_width = text_size(Type::mono, ".json").x + px(8);
  const bool entered = text_box("##name", name_, room - ending_width, std::exchange(focus_, false));
  draw_text_middle(ImGui::GetWindowDrawList(), at.x + room - ending_width + px(8), at.y + px(14), Type::mono, t.text2,
                   ending);
  look_for_file();
  const bool possible = !view.conversation().empty() && !name_.empty() && !folder_.empty();
  if (!view.chat.files_problem.empty())
    draw_remark(view.chat.files_problem, true, width);
  else if (exists_)
    draw_remark("There is such a file; it will be replaced.", false, width);
  ImGui::Dummy({0, px(2)});
  const bool asked = draw_buttons("Save", exists_ ? "Replace" : "Save", possible, sink);
  if (!(asked || entered) || !possible) return;
  looked_at_.clear();
  sink.post(ChatCommand(ExportChat{export_path(folder_, name_, format_).string(), format_}));
}

void ChatFilesDialog::draw_import(const ViewModel& view, CommandSink& sink, float width) {
  label(Type::title, colours().text, "Import chat");
  label(Type::secondary, colours().text2, "A chat that Canopy exported as JSON; it opens as a new one");
  draw_caption("File");
  const bool entered =
      path_box("##file", import_, PathFilter::chats, width - px(kDialogCaption), std::exchange(focus_, false));
  const bool possible = !import_.empty() && !view.busy();
  if (!view.chat.files_problem.empty()) draw_remark(view.chat.files_problem, true, width);
  ImGui::Dummy({0, px(2)});
  const bool asked = draw_buttons("Import", "Import", possible, sink);
  if ((asked || entered) && possible) sink.post(ChatCommand(ImportChat{typed_path(import_).string()}));
}

}  // namespace canopy::app
