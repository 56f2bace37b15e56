#include "app/panels/top_bar.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/look/widgets.h"
#include "app/panels/model_path_box.h"
#include "app/shell/actions.h"

namespace canopy::app {
namespace {

constexpr float kHeight = 48;
constexpr float kMargin = 12;
constexpr float kGap = 8;

std::string model_value(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return file_name(view.model_path);
  if (!view.model) return "none";
  return model_title(*view.model);
}

std::string device_value(const ViewModel& view) {
  if (view.model) return view.model->device;
  for (const DeviceChoice& d : view.devices)
    if (d.selector == view.device_selector && !view.device_selector.empty()) return d.name;
  for (const DeviceChoice& d : view.devices)
    if (d.usable) return d.name;
  return "none";
}

/// What fits decides what is shown: first the captions go, then the word beside the logo; the pickers share what is
/// left.
struct Fit {
  bool word = true, captions = true;
  float model_width = 0, device_width = 0;
};

/// Two wishes and the room for both: whoever wants less than half gets it, the other gets the rest.
void share(float& a, float& b, float room) {
  if (a + b <= room) return;
  const float half = std::floor(room * 0.5f);
  if (a <= half)
    b = room - a;
  else if (b <= half)
    a = room - b;
  else
    a = b = half;
}

Fit fit(float room, const std::string& model, const std::string& device) {
  Fit f;
  constexpr float kReadable = 170;  // a picker that shows most names, with its caption more
  const float word = px(kGap) + text_size(Type::title, "Canopy").x;
  auto left_for_pickers = [&] { return room - px(24) - px(18) - px(kGap) * 2 - (f.word ? word : 0); };
  auto measure = [&](float readable) {
    f.model_width = picker_width(f.captions ? "Model" : "", model);
    f.device_width = picker_width(f.captions ? "Device" : "", device);
    const float wanted = std::min(f.model_width, px(readable)) + std::min(f.device_width, px(readable));
    share(f.model_width, f.device_width, left_for_pickers());
    return wanted <= left_for_pickers();
  };
  if (measure(kReadable + 50)) return f;
  f.captions = false;
  if (measure(kReadable)) return f;
  f.word = false;
  measure(kReadable);
  return f;
}

void draw_scale_and_theme(const ViewModel& view, CommandSink& sink) {
  ButtonSpec smaller{"Smaller", Icon::minus}, larger{"Larger", Icon::plus}, theme{"Theme", Icon::theme};
  for (ButtonSpec* spec : {&smaller, &larger, &theme}) spec->show_label = false;
  smaller.tooltip = "Smaller interface  Ctrl+-";
  larger.tooltip = "Larger interface  Ctrl++";
  theme.tooltip = "Light or dark  Ctrl+Shift+L";
  smaller.enabled = view.user_scale > kMinScale;
  larger.enabled = view.user_scale < kMaxScale;
  char percent[16];
  std::snprintf(percent, sizeof percent, "%.0f%%", static_cast<double>(view.user_scale * 100));
  const float side = px(28), gap = px(4), figure = px(36);
  const float width = side * 3 + figure + gap * 3;
  const ImVec2 window = ImGui::GetWindowPos();
  float x = window.x + ImGui::GetWindowWidth() - px(kMargin) - width;
  const float y = window.y + std::floor((px(kHeight) - side) * 0.5f);
  auto next = [&](const ButtonSpec& spec) {
    ImGui::SetCursorScreenPos({x, y});
    x += side + gap;
    return button(spec);
  };
  if (next(smaller)) sink.post(SetScale{next_scale(view.user_scale, -1)});
  draw_text_middle(ImGui::GetWindowDrawList(), x + (figure - text_size(Type::mono, percent).x) * 0.5f, y + side * 0.5f,
                   Type::mono, colours().text2, percent);
  x += figure + gap;
  if (next(larger)) sink.post(SetScale{next_scale(view.user_scale, 1)});
  if (next(theme)) sink.post(SetTheme{view.theme == ThemeKind::dark ? ThemeKind::light : ThemeKind::dark});
}

std::string model_tooltip(const ViewModel& view) {
  if (!view.model) return "Choose a model";
  const ModelReady& model = *view.model;
  return model.weights_note.empty() ? model.file_name : model.file_name + "\n" + model.weights_note;
}

}  // namespace

void TopBar::draw(const ViewModel& view, CommandSink& sink) {
  const std::string model = model_value(view), device = device_value(view);
  const float right = px(28) * 3 + px(36) + px(4) * 3 + px(kMargin) * 2;
  const Fit f = fit(ImGui::GetWindowWidth() - px(kMargin) - right, model, device);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetWindowPos();
  const float middle = origin.y + px(kHeight) * 0.5f;
  float x = px(kMargin);
  draw_logo(list, {origin.x + x + px(12), middle}, px(24));
  x += px(24);
  if (f.word) {
    draw_text_middle(list, origin.x + x + px(kGap), middle, Type::title, colours().text, "Canopy");
    x += px(kGap) + text_size(Type::title, "Canopy").x;
  }
  ImGui::SetCursorPosX(std::floor(x + px(18)));
  centre_in_row(0, px(kHeight), px(32));
  if (picker("Model", f.captions ? "Model" : "", model, f.model_width,
             view.model || view.model_state == ModelState::loading))
    ImGui::OpenPopup("Model menu");
  tooltip(model_tooltip(view).c_str());
  ImGui::SetNextWindowPos({ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + px(4)});
  draw_model_menu(view, sink);
  ImGui::SameLine(0, px(kGap));
  if (picker("Device", f.captions ? "Device" : "", device, f.device_width, !view.devices.empty() || view.model))
    ImGui::OpenPopup("Device menu");
  if (view.model) tooltip((view.model->device + ", " + view.model->driver).c_str());
  ImGui::SetNextWindowPos({ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + px(4)});
  draw_device_menu(view, sink);
  draw_scale_and_theme(view, sink);
}

void TopBar::draw_model_menu(const ViewModel& view, CommandSink& sink) {
  const float width = std::min(px(380), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup("Model menu")) {
    if (choice("Open model", "Open model\u2026", "A GGUF file or a Hugging Face folder", false, true, width)) {
      sink.post(BrowseModel{});
      ImGui::CloseCurrentPopup();
    }
    if (!view.default_model.empty()) {
      const bool selected = view.model && view.model->file_name == file_name(view.default_model);
      if (choice("Default model", "SmolLM2 135M", file_name(view.default_model), selected, true, width)) {
        sink.post(OpenModel{view.default_model});
        ImGui::CloseCurrentPopup();
      }
    }
    if (model_path_box(path_, width)) {
      sink.post(OpenModel{path_});
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void TopBar::draw_device_menu(const ViewModel& view, CommandSink& sink) {
  const float width = std::min(px(380), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup("Device menu")) {
    if (view.devices.empty()) label(Type::secondary, colours().text2, "No Vulkan device was found");
    for (const DeviceChoice& device : view.devices) {
      ImGui::PushID(device.selector.c_str());
      const bool selected = view.model && view.model->device == device.name;
      const std::string detail = device.usable ? device.type : device.reason;
      if (choice("device", device.name, detail, selected, device.usable, width)) {
        sink.post(ChooseDevice{device.selector});
        ImGui::CloseCurrentPopup();
      }
      ImGui::PopID();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
