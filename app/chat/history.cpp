#include "app/chat/history.h"

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
