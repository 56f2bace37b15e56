#include "app/chat/prompt_menu.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kPromptLabel = 130, kPromptText = 66;

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

bool keeps(const ViewModel& view, const std::string& name) {
  const auto& all = view.chat.prompts;
  return std::any_of(all.begin(), all.end(), [&](const NamedPrompt& p) { return p.name == name; });
}

}  // namespace

void PromptMenu::draw(const ViewModel& view, CommandSink& sink, float width) {
  draw_choice(view, sink, width);
  std::string text = view.messages.system_prompt;
  push_type(Type::base);
  const bool changed =
      ImGui::InputTextMultiline("##system prompt", &text, {width, px(kPromptText)}, ImGuiInputTextFlags_WordWrap);
  // Esc closes the menu. Dear ImGui would also undo what was typed; ignore that change.
  if (changed && !ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(SetSystemPrompt{text});
  ImGui::PopFont();
  draw_keeping(view, sink, width);
}

void PromptMenu::draw_choice(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  draw_text_middle(ImGui::GetWindowDrawList(), a.x, a.y + px(14), Type::base, colours().text2, "System prompt");
  const std::string& text = view.messages.system_prompt;
  const std::string name = name_of_prompt(view.chat.prompts, text);
  if (name != known_) name_ = known_ = name;
  ImGui::SetCursorScreenPos({a.x + px(kPromptLabel), a.y});
  ImGui::SetNextItemWidth(width - px(kPromptLabel));
  push_type(Type::base);
  const std::string shown = text.empty() ? "None" : name.empty() ? "Not kept under a name" : name;
  if (ImGui::BeginCombo("##kept prompts", shown.c_str())) {
    if (ImGui::Selectable("None", text.empty())) sink.post(ChatCommand(SetSystemPrompt{""}));
    for (const NamedPrompt& prompt : view.chat.prompts) {
      ImGui::PushID(prompt.name.c_str());
      if (ImGui::Selectable(prompt.name.c_str(), prompt.name == name))
        sink.post(ChatCommand(SetSystemPrompt{prompt.text}));
      tooltip(prompt.text.c_str());
      ImGui::PopID();
    }
    ImGui::EndCombo();
  } else {
    tooltip("The prompts that you keep; each chat has its own choice");
  }
  ImGui::PopFont();
  ImGui::SetCursorScreenPos({a.x, a.y + px(34)});
}

/// The name under which the text is kept, with what can be done: keep it, give it that name, delete it.
void PromptMenu::draw_keeping(const ViewModel& view, CommandSink& sink, float width) {
  const bool has_text = !blank(view.messages.system_prompt);
  const std::string kept = name_of_prompt(view.chat.prompts, view.messages.system_prompt);
  ButtonSpec save{"Save prompt", Icon::none, ButtonKind::line}, remove{"Delete prompt", Icon::trash};
  const bool renames = !kept.empty() && name_ != kept;
  save.words = renames ? "Rename" : "Save";
  save.enabled = has_text && !blank(name_) && (kept.empty() || renames) && !(renames && keeps(view, name_));
  save.tooltip = renames              ? "Give this system prompt the name on the left"
                 : keeps(view, name_) ? "Replace the text that is kept under this name"
                                      : "Keep this text under the name on the left, for every chat";
  remove.show_label = false;
  remove.enabled = !kept.empty();
  remove.tooltip = "Delete this prompt from those that are kept; the chat keeps its text";
  const float buttons = button_size(save).x + px(28) + px(12);
  ImGui::SetNextItemWidth(width - buttons);
  push_type(Type::base);
  ImGui::InputTextWithHint("##prompt name", "Name, to keep it", &name_);
  ImGui::PopFont();
  ImGui::SameLine(0, px(8));
  if (button(save)) {
    if (renames)
      sink.post(ChatCommand(RenamePrompt{kept, name_}));
    else
      sink.post(ChatCommand(SavePrompt{name_, view.messages.system_prompt}));
  }
  ImGui::SameLine(0, px(4));
  if (button(remove)) sink.post(ChatCommand(DeletePrompt{kept}));
}

}  // namespace canopy::app
