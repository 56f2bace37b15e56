#include "app/panels/start_panel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/panels/error_cards.h"
#include "app/panels/model_path_box.h"
#include "app/panels/progress_text.h"

namespace canopy::app {
namespace {

constexpr float kColumn = 824;  // two cards of 400 and a gap
constexpr float kCardGap = 24;
constexpr float kPictureHeight = 132;
constexpr float kCardPadding = 24;
constexpr float kMinCard = 300;
constexpr const char* kHeadline = "Chat with a model on your own GPU";
constexpr float kDevicePitch = 30;

void draw_centred(float x, float y, Type type, Colour colour, std::string_view text) {
  draw_text(ImGui::GetWindowDrawList(), {x - text_size(type, text).x * 0.5f, y}, type, colour, text);
}

void draw_card_back(ImVec2 a, ImVec2 size, Colour border) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 b = {a.x + size.x, a.y + size.y};
  list->AddRectFilled(a, b, t.panel, px(8));
  list->AddRectFilled(a, {b.x, a.y + px(kPictureHeight)}, t.canvas, px(8), ImDrawFlags_RoundTop);
  list->AddLine({a.x, a.y + px(kPictureHeight)}, {b.x, a.y + px(kPictureHeight)}, t.line, px(1));
  list->AddRect(a, b, border, px(8), px(1));
}

/// A dashed outline waiting for a file.
void draw_drop_picture(ImVec2 a, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 p = {a.x + px(24), a.y + px(20)}, q = {a.x + width - px(24), a.y + px(kPictureHeight) - px(20)};
  const float dash = px(6), period = px(11), stroke = px(1.5f);
  for (float x = p.x; x < q.x; x += period) {
    list->AddLine({x, p.y}, {std::min(x + dash, q.x), p.y}, t.ctl, stroke);
    list->AddLine({x, q.y}, {std::min(x + dash, q.x), q.y}, t.ctl, stroke);
  }
  for (float y = p.y; y < q.y; y += period) {
    list->AddLine({p.x, y}, {p.x, std::min(y + dash, q.y)}, t.ctl, stroke);
    list->AddLine({q.x, y}, {q.x, std::min(y + dash, q.y)}, t.ctl, stroke);
  }
  draw_icon(list, Icon::drop, {(p.x + q.x) * 0.5f, (p.y + q.y) * 0.5f - px(10)}, px(26), t.text3);
  draw_centred((p.x + q.x) * 0.5f, (p.y + q.y) * 0.5f + px(12), Type::secondary, t.text2,
               "Drop a file anywhere in this window");
}

/// A stack of layers, which is what a model is.
void draw_layers_picture(ImVec2 a, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float bar = px(150), x = std::floor(a.x + (width - bar) * 0.5f);
  for (int i = 0; i < 8; ++i) {
    const float y = a.y + px(20) + px(12) * static_cast<float>(i);
    list->AddRectFilled({x, y}, {x + bar, y + px(8)}, i % 2 ? t.accent : t.raised, px(2));
  }
}

struct CardWords {
  const char* title;
  const char* body;
  const char* note;
  Icon note_icon;
};

/// Draws the words of a card; returns where its buttons go.
ImVec2 draw_words(ImVec2 a, float width, const CardWords& words) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = a.x + px(kCardPadding), room = width - px(kCardPadding) * 2;
  float y = a.y + px(kPictureHeight) + px(18);
  draw_text(list, {x, y}, Type::card_title, t.text, words.title);
  y += px(32);
  TextBlock body;
  body.layout(words.body, Type::chat, room);
  body.draw(list, {x, y}, words.body, Type::chat, t.text2, px(21));
  y += std::max(px(42), body.height(px(21))) + px(10);
  draw_icon(list, words.note_icon, {x + px(7), y + px(8)}, px(14), t.accent_text);
  draw_text_middle(list, x + px(22), y + px(8), Type::secondary, t.text2,
                   elided(Type::secondary, words.note, room - px(22)));
  return {x, y + px(30)};
}

float card_height() {
  return px(kPictureHeight + 18 + 32 + 42 + 10 + 30 + 38 + 24);
}

void draw_load_progress(const ViewModel& view, CommandSink& sink, ImVec2 a, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 b = {a.x + width, a.y + px(116)};
  list->AddRectFilled(a, b, t.panel, px(8));
  list->AddRect(a, b, t.line, px(8), px(1));
  const float x = a.x + px(kCardPadding), room = width - px(kCardPadding) * 2;
  const std::string figures = progress_figures(view.loading);
  const float figures_width = text_size(Type::mono, figures).x;
  draw_text(list, {x, a.y + px(20)}, Type::chat_semibold, t.text,
            elided(Type::chat_semibold, "Loading " + file_name(view.model_path), room));
  draw_text(list, {x, a.y + px(44)}, Type::secondary, t.text2,
            elided(Type::secondary, view.loading.stage, room - figures_width - px(12)));
  draw_text(list, {x + room - figures_width, a.y + px(44)}, Type::mono, t.text2, figures);
  ButtonSpec cancel{"Cancel", Icon::none, ButtonKind::line};
  const ImVec2 size = button_size(cancel);
  if (view.loading.total)  // an empty bar would look like a load that is stuck
    draw_bar(list, {x, a.y + px(80)}, {room - size.x - px(16), px(8)}, view.loading.fraction(), t.accent, t.raised);
  ImGui::SetCursorScreenPos({x + room - size.x, a.y + px(70)});
  if (button(cancel)) sink.post(CancelLoading{});
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, b.y - a.y});
}

void draw_device_row(const ViewModel& view, const DeviceChoice& device, bool in_use, CommandSink& sink, ImVec2 a,
                     float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = a.y + px(kDevicePitch) * 0.5f, name_x = a.x + px(26);
  if (in_use)
    draw_check_disc(list, {a.x + px(8), middle}, px(7), t.accent, t.on_accent);
  else if (!device.usable)
    draw_cross(list, {a.x + px(8), middle}, px(4), t.rejected, px(2));
  else
    list->AddCircleFilled({a.x + px(8), middle}, px(3), t.unreached);
  ButtonSpec use{"Use", Icon::none, ButtonKind::line};
  use.height = 24;
  use.type = Type::secondary;
  const float button_width = button_size(use).x;
  const float name_room = std::floor((width - px(26)) * 0.45f);
  draw_text_middle(list, name_x, middle, Type::base_medium, device.usable ? t.text : t.text3,
                   elided(Type::base_medium, device.name, name_room - px(12)));
  const std::string about =
      device.usable ? (device.type == "cpu" ? "software device, slow" : device.type) : device.reason;
  const float about_room = width - px(26) - name_room - button_width - px(12);
  draw_text_middle(list, name_x + name_room, middle, Type::base, t.text2, elided(Type::base, about, about_room));
  if (in_use || !device.usable) return;
  ImGui::SetCursorScreenPos({a.x + width - button_width, middle - px(12)});
  if (button(use)) sink.post(ChooseDevice{device.selector});
  (void)view;
}

/// The device a load would take: the chosen one, or the first usable one.
size_t device_in_use(const ViewModel& view) {
  size_t first = view.devices.size();
  for (size_t i = 0; i < view.devices.size(); ++i) {
    if (!view.device_selector.empty() && view.devices[i].selector == view.device_selector) return i;
    if (view.devices[i].usable && first == view.devices.size()) first = i;
  }
  return first;
}

void draw_devices(const ViewModel& view, CommandSink& sink, ImVec2 a, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float rows = static_cast<float>(std::max<size_t>(1, view.devices.size()));
  const ImVec2 b = {a.x + width, a.y + px(16 + 20 + 10 + 12) + px(kDevicePitch) * rows};
  list->AddRectFilled(a, b, t.panel, px(8));
  list->AddRect(a, b, t.line, px(8), px(1));
  const float x = a.x + px(kCardPadding), room = width - px(kCardPadding) * 2;
  draw_text(list, {x, a.y + px(16)}, Type::chat_semibold, t.text, "Devices on this computer");
  const std::string_view promise = "Nothing leaves this computer";
  if (room > px(420))
    draw_text(list, {x + room - text_size(Type::secondary, promise).x, a.y + px(18)}, Type::secondary, t.text3,
              promise);
  float y = a.y + px(16 + 20 + 10);
  if (view.devices.empty())
    draw_text_middle(list, x, y + px(kDevicePitch) * 0.5f, Type::base, t.text2, "No Vulkan device was found");
  const size_t in_use = device_in_use(view);
  for (size_t i = 0; i < view.devices.size(); ++i, y += px(kDevicePitch)) {
    ImGui::PushID(static_cast<int>(i));
    draw_device_row(view, view.devices[i], i == in_use, sink, {x, y}, room);
    ImGui::PopID();
  }
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, b.y - a.y});
}

}  // namespace

bool StartPanel::wanted(const ViewModel& view) const {
  return !view.model && view.messages.empty();
}

void StartPanel::draw(const ViewModel& view, CommandSink& sink) {
  const Theme& t = colours();
  ImGui::PushStyleColor(ImGuiCol_ChildBg, t.back);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::SetCursorPos({0, 0});
  ImGui::BeginChild("Start page", ImGui::GetWindowSize(), ImGuiChildFlags_NavFlattened);
  const float room = ImGui::GetContentRegionAvail().x;
  const float width = std::floor(std::min(px(kColumn), room - px(32)));
  const bool side_by_side = !view.default_model.empty() && width >= px(kMinCard) * 2 + px(kCardGap);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float left = std::floor(origin.x + (room - width) * 0.5f), centre = origin.x + room * 0.5f;
  const float top = std::max(px(20), (ImGui::GetWindowHeight() - px(610)) * 0.4f);
  float y = origin.y + top;
  const Type headline = text_size(Type::headline, kHeadline).x <= width ? Type::headline : Type::card_title;
  draw_centred(centre, y, headline, t.text, elided(headline, kHeadline, width));
  draw_centred(centre, y + px(52), Type::lead, t.text2,
               elided(Type::lead, "Canopy runs it with its own Vulkan engine.", width));
  ImGui::SetCursorScreenPos({left, y + px(98)});
  ImGui::BeginGroup();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(8), px(16)});
  draw_error_cards(view, sink, width);
  if (view.model_state == ModelState::loading) {
    draw_load_progress(view, sink, ImGui::GetCursorScreenPos(), width);
  } else {
    const float card_width = side_by_side ? std::floor((width - px(kCardGap)) * 0.5f) : width;
    const ImVec2 size = {card_width, card_height() + (view.path_box_shown ? px(38) : 0)};
    const ImVec2 a = ImGui::GetCursorScreenPos();
    ImVec2 next = a;
    if (!view.default_model.empty()) {
      draw_default_card(view, sink, a, size);
      next = side_by_side ? ImVec2(a.x + card_width + px(kCardGap), a.y) : ImVec2(a.x, a.y + size.y + px(16));
    }
    draw_open_card(view, sink, next, size);
    ImGui::SetCursorScreenPos(a);
    ImGui::Dummy({width, next.y + size.y - a.y});
  }
  draw_devices(view, sink, ImGui::GetCursorScreenPos(), width);
  ImGui::Dummy({width, px(8)});
  ImGui::PopStyleVar();
  ImGui::EndGroup();
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

void StartPanel::draw_default_card(const ViewModel& view, CommandSink& sink, ImVec2 a, ImVec2 size) {
  draw_card_back(a, size, colours().accent);
  draw_layers_picture(a, size.x);
  const std::string note = file_name(view.default_model);
  ImGui::SetCursorScreenPos(draw_words(a, size.x,
                                       {"Start with SmolLM2",
                                        "A small chat model that came with the set-up. It runs on any "
                                        "device, a software one included.",
                                        note.c_str(), Icon::check}));
  ButtonSpec use{"Use SmolLM2 135M", Icon::none, ButtonKind::primary};
  use.height = 38;
  use.type = Type::chat_semibold;
  if (button(use)) sink.post(OpenModel{view.default_model});
}

void StartPanel::draw_open_card(const ViewModel& view, CommandSink& sink, ImVec2 a, ImVec2 size) {
  draw_card_back(a, size, colours().line);
  draw_drop_picture(a, size.x);
  const ImVec2 at =
      draw_words(a, size.x,
                 {"Open a model", "Choose a GGUF file or a Hugging Face folder, or drop it on this window.",
                  "Read from where it is, never copied", Icon::folder});
  ImGui::SetCursorScreenPos(at);
  ButtonSpec open{"Open model", Icon::folder, view.default_model.empty() ? ButtonKind::primary : ButtonKind::line};
  open.height = 38;
  open.type = Type::chat;
  open.tooltip = "Open model  Ctrl+O";
  if (button(open)) sink.post(BrowseModel{});
  if (!view.path_box_shown) return;
  ImGui::SetCursorScreenPos({at.x, at.y + px(38) + px(10)});
  if (model_path_box(path_, size.x - px(kCardPadding) * 2)) sink.post(OpenModel{path_});
}

}  // namespace canopy::app
