#include "app/bars/memory_bar.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "app/look/widgets.h"
#include "app/models/memory_table.h"

namespace canopy::app {
namespace {

constexpr const char* kMemoryPopup = "Memory menu";
constexpr float kMemoryBarHeight = 32, kBarTop = 17, kBarHeight = 10;
constexpr uint32_t kContexts[] = {2048, 4096, 8192, 16384, 32768, 65536, 131072};

Colour colour_of(MemoryPart part) {
  const Theme& t = colours();
  switch (part) {
    case MemoryPart::target: return t.verify;
    case MemoryPart::drafter: return t.draft;
    case MemoryPart::cache: return t.text2;
    case MemoryPart::states: return mix(t.text2, t.verify, 0.5f);
    case MemoryPart::tree: return t.text3;
    case MemoryPart::other_apps: return t.rest;
  }
  return t.rest;
}

Colour word_colour(MemoryFit fit) {
  const Theme& t = colours();
  switch (fit) {
    case MemoryFit::fits: return t.accent_text;
    case MemoryFit::tight: return t.bonus_text;
    case MemoryFit::wont_fit: return t.rejected_text;
  }
  return t.text2;
}

void draw_parts(const MemoryTable& table, ImVec2 a, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float top = a.y + px(kBarTop), bottom = top + px(kBarHeight);
  list->AddRectFilled({a.x, top}, {a.x + width, bottom}, colours().raised, px(2));
  const double whole = static_cast<double>(std::max<uint64_t>(1, std::max(table.budget, table.used)));
  float x = a.x;
  for (const MemoryRow& row : table.rows) {
    const float length = static_cast<float>(static_cast<double>(row.bytes) / whole) * width;
    const float shown = std::max(px(2), length - px(1));
    list->AddRectFilled({x, top}, {std::min(x + shown, a.x + width), bottom}, colour_of(row.part));
    x += length;
  }
}

void draw_table_row(const char* words, uint64_t bytes, float width, const Colour* swatch) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float middle = a.y + px(11);
  if (swatch) list->AddRectFilled({a.x, middle - px(5)}, {a.x + px(10), middle + px(5)}, *swatch, px(2));
  draw_text_middle(list, a.x + px(20), middle, Type::base, t.text2, words);
  const std::string figure = bytes_text(bytes);
  draw_text_middle(list, a.x + width - text_size(Type::mono, figure).x, middle, Type::mono, t.text, figure);
  ImGui::Dummy({width, px(22)});
}

void draw_table(const MemoryTable& table, bool released, float width) {
  label(Type::base_semibold, colours().text,
        released ? "Memory of the device, the model released" : "Memory of the device, measured");
  for (const MemoryRow& row : table.rows) {
    const Colour swatch = colour_of(row.part);
    draw_table_row(to_string(row.part), row.bytes, width, &swatch);
  }
  draw_table_row("Together", table.used, width, nullptr);
  draw_table_row("The device allows", table.budget, width, nullptr);
}

/// Draws the choice of contexts, each with the memory it needs. One that does not fit can be chosen all the same.
void draw_contexts(const ViewModel& view, CommandSink& sink, float width) {
  const uint32_t most = view.model->model_context;
  label(Type::base_semibold, colours().text, "Context");
  auto offer = [&](uint32_t positions, const std::string& title, const std::string& detail, bool too_much) {
    ImGui::PushID(static_cast<int>(positions));
    if (choice("context", title, detail, view.models.context == positions, !view.busy(), width)) {
      sink.post(ModelsCommand(ChooseContext{positions, too_much}));
      ImGui::CloseCurrentPopup();
    }
    ImGui::PopID();
  };
  const char* when = view.model_state == ModelState::released ? " positions before" : " positions now";
  offer(0, "Automatic", grouped(view.model->context) + when, false);
  for (const uint32_t positions : kContexts) {
    if (positions > most) break;
    const MemoryTable table = memory_table_at(view.models.memory, positions, true);
    std::string detail = std::string(to_string(table.fit)) + ", " + bytes_of_text(table.used, table.budget);
    if (table.overridden) detail += "; load anyway";
    offer(positions, grouped(positions) + " positions", detail, table.overridden);
  }
}

void draw_popup(const ViewModel& view, CommandSink& sink, const MemoryTable& table) {
  const float width = std::min(px(340), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(12), px(12)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(8), px(2)});
  if (ImGui::BeginPopup(kMemoryPopup)) {
    draw_table(table, view.model_state == ModelState::released, width);
    ImGui::Dummy({0, px(6)});
    draw_contexts(view, sink, width);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

}  // namespace

void memory_bar(const ViewModel& view, CommandSink& sink, float width) {
  if (!view.model || view.models.memory.budget == 0) return;
  const Theme& t = colours();
  const bool released = view.model_state == ModelState::released;
  const MemoryTable table = released ? memory_table(after_release(view.models.memory))
                                     : memory_table(view.models.memory, view.models.override_memory);
  const ImVec2 a = ImGui::GetCursorScreenPos();
  if (ImGui::InvisibleButton("Memory", {width, px(kMemoryBarHeight)}, ImGuiButtonFlags_EnableNav))
    ImGui::OpenPopup(kMemoryPopup);
  tooltip(released ? "The model is released and takes no memory; your next message loads it again"
                   : "What the models take of the device's memory; press for the parts and the context");
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float words_y = a.y + px(7);
  float x = a.x;
  const std::string figures = bytes_of_text(table.used, table.budget);
  const float figures_width = text_size(Type::mono_caption, figures).x;
  const char* verdict = released ? "Released" : to_string(table.fit);
  if (text_size(Type::caption, "Memory ").x + text_size(Type::caption, verdict).x + figures_width + px(20) <= width) {
    draw_text_middle(list, x, words_y, Type::caption, t.text3, "Memory");
    x += text_size(Type::caption, "Memory").x + px(6);
  }
  draw_text_middle(list, x, words_y, Type::caption, released ? t.text2 : word_colour(table.fit), verdict);
  if (x - a.x + text_size(Type::caption, verdict).x + figures_width + px(8) <= width)
    draw_text_middle(list, a.x + width - figures_width, words_y, Type::mono_caption, t.text2, figures);
  draw_parts(table, a, width);
  ImGui::SetNextWindowPos({a.x, a.y + px(kMemoryBarHeight) + px(4)});
  draw_popup(view, sink, table);
}

}  // namespace canopy::app
