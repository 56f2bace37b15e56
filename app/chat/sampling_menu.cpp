#include "app/chat/sampling_menu.h"

#include <imgui_stdlib.h>

#include <algorithm>
#include <cstdio>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kWidth = 320;
constexpr float kLabelWidth = 130;
constexpr float kRowPitch = 36;

/// Begins a row: its name at the left, the cursor where its control goes.
void begin_row(const char* name, const char* about) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + px(14), Type::base, colours().text2, name);
  ImGui::Dummy({px(kLabelWidth), px(28)});
  tooltip(about);
  ImGui::SetCursorScreenPos({at.x + px(kLabelWidth), at.y});
  ImGui::SetNextItemWidth(px(kWidth - kLabelWidth));
}

void end_row(float top) {
  ImGui::SetCursorPosY(top + px(kRowPitch));
}

bool slider(const char* name, const char* about, float& value, float low, float high) {
  const float top = ImGui::GetCursorPosY();
  begin_row(name, about);
  ImGui::PushID(name);
  const bool changed = ImGui::SliderFloat("##value", &value, low, high, "%.2f", ImGuiSliderFlags_AlwaysClamp);
  ImGui::PopID();
  end_row(top);
  return changed;
}

/// The seed of the next reply.
bool seed_row(const ViewModel& view, SamplingSettings& s) {
  const float top = ImGui::GetCursorPosY();
  begin_row("Next seed", "The same seed, settings and messages give the same text. Each reply takes the next one");
  int seed = static_cast<int>(view.sampling.seed + view.replies_drawn);
  const bool changed = ImGui::InputInt("##seed", &seed, 1, 100);
  if (changed) s.seed = static_cast<uint64_t>(std::clamp(seed, 0, static_cast<int>(kMaxSeed)));
  end_row(top);
  return changed;
}

}  // namespace

std::string sampling_words(const ViewModel& view, float room) {
  const char* prompt = view.messages.system_prompt.empty() ? "system prompt off" : "system prompt on";
  if (view.sampling.temperature == 0) return std::string("Greedy, ") + prompt;
  char seed[32], heat[32];
  std::snprintf(seed, sizeof seed, ", seed %llu",
                static_cast<unsigned long long>(view.sampling.seed + view.replies_drawn));
  std::snprintf(heat, sizeof heat, "%.2g", static_cast<double>(view.sampling.temperature));
  // The longest that fits, the shortest where none does.
  std::string words;
  for (const std::string& each :
       {std::string("Temperature ") + heat + seed + ", " + prompt, std::string("Temperature ") + heat + ", " + prompt,
        std::string("Temp ") + heat + ", " + prompt, std::string("Temp ") + heat}) {
    words = each;
    if (text_size(Type::secondary, words).x <= room) break;
  }
  return words;
}

/// Goes with the chat, before its first message.
void system_prompt_row(const ViewModel& view, CommandSink& sink) {
  label(Type::base, colours().text2, "System prompt");
  std::string text = view.messages.system_prompt;
  push_type(Type::base);
  const bool changed =
      ImGui::InputTextMultiline("##system prompt", &text, {px(kWidth), px(66)}, ImGuiInputTextFlags_WordWrap);
  // Esc closes the menu; to Dear ImGui it also means: give up what was typed.
  if (changed && !ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(SetSystemPrompt{text});
  ImGui::PopFont();
}

void draw_sampling_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner) {
  const Theme& t = colours();
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {0, 1});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, t.card);
  ImGui::PushStyleColor(ImGuiCol_Button, t.card);
  if (ImGui::BeginPopup(kSamplingMenu)) {
    push_type(Type::mono);
    SamplingSettings s = view.sampling;
    bool changed =
        slider("Temperature", "0 takes the likeliest token; more is more varied", s.temperature, 0, kMaxTemperature);
    changed |=
        slider("Top-p", "Draw from the likeliest tokens of this total probability; 1 is off", s.top_p, kMinTopP, 1);
    changed |=
        slider("Min-p", "Leave out tokens below this share of the likeliest one; 0 is off", s.min_p, 0, kMaxMinP);
    changed |= slider("Repetition", "Makes what was written less likely; 1 is off", s.repetition_penalty, kMinPenalty,
                      kMaxPenalty);
    const bool seeded = seed_row(view, s);
    ButtonSpec usual{"Usual", Icon::none, ButtonKind::line}, greedy{"Greedy", Icon::none, ButtonKind::line};
    usual.tooltip = "The settings that Canopy starts with";
    greedy.tooltip = "Always the likeliest token: what the command line does by default";
    const uint64_t seed = s.seed;
    system_prompt_row(view, sink);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(4));
    if (button(usual)) s = chat_sampling(), s.seed = seed, changed = true;
    ImGui::SameLine(0, px(8));
    if (button(greedy)) s = SamplingSettings{}, s.seed = seed, changed = true;
    ImGui::PopFont();
    if (changed || seeded) sink.post(SetSampling{s, seeded});
    ImGui::EndPopup();
  }
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
