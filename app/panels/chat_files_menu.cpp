#include "app/panels/chat_files_menu.h"

#include <imgui_stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "app/chat/chat_export.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kWidth = 340;

/// Where people look for a file they saved. The folder of documents has no other fixed name.
std::filesystem::path documents() {
  const char* home = std::getenv("HOME");
  if (!home || !*home) return {};
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(home) / "Documents";
  return std::filesystem::is_directory(folder, ignored) ? folder : std::filesystem::path(home);
}

/// The path that is being typed: the window's only popup of its kind, so one is enough.
struct Draft {
  std::string path;
  uint64_t chat = 0;  // whose name it was made of
};

Draft& draft() {
  static Draft the_draft;
  return the_draft;
}

void suggest(const ViewModel& view) {
  Draft& d = draft();
  const uint64_t chat = view.messages.empty() ? 0 : view.messages.front().id;
  if (!d.path.empty() && d.chat == chat) return;
  d.chat = chat;
  d.path = (documents() / export_name(view.messages, ".md")).string();
}

std::string with_ending(const std::string& path, const char* ending) {
  return std::filesystem::path(path).replace_extension(ending).string();
}

}  // namespace

void draw_chat_files_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner) {
  const Theme& t = colours();
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {1, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(14), px(12)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, t.card);
  if (ImGui::BeginPopup(kChatFilesMenu)) {
    if (ImGui::IsWindowAppearing()) suggest(view);
    std::string& path = draft().path;
    label(Type::base_semibold, t.text, "Export or import");
    ImGui::SetNextItemWidth(px(kWidth));
    ImGui::InputText("##path", &path);
    ButtonSpec markdown{"Save Markdown", Icon::none, ButtonKind::line}, json{"Save JSON", Icon::none, ButtonKind::line},
        open{"Import JSON", Icon::none, ButtonKind::line};
    markdown.enabled = json.enabled = !view.messages.empty() && !path.empty();
    open.enabled = !path.empty() && !view.busy();
    markdown.tooltip = "The branch that is shown, to be read";
    json.tooltip = "All branches, parameters and times, to be imported again";
    open.tooltip = "Opens a chat that was saved as JSON, as a new one";
    if (button(markdown)) {
      sink.post(ExportChat{with_ending(path, ".md"), ExportFormat::markdown});
      ImGui::CloseCurrentPopup();
    }
    ImGui::SameLine(0, px(8));
    if (button(json)) {
      sink.post(ExportChat{with_ending(path, ".json"), ExportFormat::json});
      ImGui::CloseCurrentPopup();
    }
    ImGui::SameLine(0, px(8));
    if (button(open)) {
      sink.post(ImportChat{path});
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
