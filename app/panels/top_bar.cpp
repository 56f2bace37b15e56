#include "app/panels/top_bar.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/look/widgets.h"
#include "app/panels/memory_bar.h"
#include "app/panels/mode_segment.h"
#include "app/shell/actions.h"

namespace canopy::app {
namespace {

constexpr float kHeight = 48, kControl = 32, kMargin = 12, kGap = 8;
constexpr float kLogo = 24, kAfterLogo = 18, kAroundMemory = 14;
constexpr float kNoQuantization = 1440, kNoCaptions = 1360;  // window widths below which words go

/// What the bar shows; each step gives up a little more.
struct Step {
  bool quantization, captions, word;
  float memory;  // width of the bar; 0: none
  bool segment, scale, all_pickers;
  float readable;  // a picker is never narrower than this, unless its value is
};
constexpr Step kSteps[] = {
    {true, true, true, 250, true, true, true, 240},    {false, true, true, 250, true, true, true, 200},
    {false, false, true, 250, true, true, true, 150},  {false, false, true, 150, true, true, true, 120},
    {false, false, false, 110, true, true, true, 110}, {false, false, false, 0, true, true, true, 100},
    {false, false, false, 0, false, true, true, 90},   {false, false, false, 0, false, true, false, 90},
    {false, false, false, 0, false, false, false, 70},
};

std::string without_end(std::string text, const std::string& end) {
  if (!end.empty() && text.ends_with(" " + end)) text.resize(text.size() - end.size() - 1);
  return text;
}

std::string target_value(const ViewModel& view, bool quantization) {
  if (view.model_state == ModelState::loading) return file_name(view.model_path);
  if (!view.model) return "none";
  const std::string title = model_title(*view.model);
  return quantization ? title : without_end(title, view.model->quantization);
}

std::string drafter_value(const ViewModel& view) {
  if (!view.model || view.model->drafter.empty()) return "none";
  const std::string& name = view.model->drafter;
  return name.ends_with(".gguf") ? name.substr(0, name.size() - 5) : name;
}

std::string device_value(const ViewModel& view) {
  if (view.model) return view.model->device;
  for (const DeviceChoice& d : view.devices)
    if (d.selector == view.device_selector && !view.device_selector.empty()) return d.name;
  for (const DeviceChoice& d : view.devices)
    if (d.usable) return d.name;
  return "none";
}

std::string target_tooltip(const ViewModel& view) {
  if (!view.model) return "Choose a model  Ctrl+O";
  const ModelReady& model = *view.model;
  return model.weights_note.empty() ? model.file_name : model.file_name + "\n" + model.weights_note;
}

std::string drafter_tooltip(const ViewModel& view) {
  if (!view.model) return "Chosen with the model";
  if (view.model->drafter.empty()) return "No drafter: every token is the target's own";
  return view.model->drafter + "\nDFlash, blocks of " + std::to_string(view.model->block);
}

float scale_and_theme_width(bool scale) {
  return px(28) + (scale ? px(28) * 2 + px(36) + px(4) * 3 : 0);
}

void draw_scale_and_theme(const ViewModel& view, CommandSink& sink, float right, bool scale) {
  ButtonSpec smaller{"Smaller", Icon::minus}, larger{"Larger", Icon::plus}, theme{"Theme", Icon::theme};
  for (ButtonSpec* spec : {&smaller, &larger, &theme}) spec->show_label = false;
  smaller.tooltip = "Smaller interface  Ctrl+-";
  larger.tooltip = "Larger interface  Ctrl++";
  theme.tooltip = "Light or dark  Ctrl+Shift+L";
  smaller.enabled = view.user_scale > kMinScale;
  larger.enabled = view.user_scale < kMaxScale;
  const float side = px(28), gap = px(4), figure = px(36);
  float x = right - scale_and_theme_width(scale);
  const float y = ImGui::GetWindowPos().y + std::floor((px(kHeight) - side) * 0.5f);
  auto next = [&](const ButtonSpec& spec) {
    ImGui::SetCursorScreenPos({x, y});
    x += side + gap;
    return button(spec);
  };
  if (scale) {
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.0f%%", static_cast<double>(view.user_scale * 100));
    if (next(smaller)) sink.post(SetScale{next_scale(view.user_scale, -1)});
    draw_text_middle(ImGui::GetWindowDrawList(), x + (figure - text_size(Type::mono, percent).x) * 0.5f,
                     y + side * 0.5f, Type::mono, colours().text2, percent);
    x += figure + gap;
    if (next(larger)) sink.post(SetScale{next_scale(view.user_scale, 1)});
  }
  if (next(theme)) sink.post(SetTheme{view.theme == ThemeKind::dark ? ThemeKind::light : ThemeKind::dark});
}

struct PickerSpec {
  const char *id, *menu;
  std::string caption, value, tip;
  bool has_value = true;
  float width = 0;
};

}  // namespace

struct TopBar::Fit {
  Step step;
  std::vector<PickerSpec> pickers;
  float mode = 0;  // width of the segment or picker; 0 without a model
};

/// Every picker gets what it needs, or the widest ones are cut down to one width.
static void share(std::vector<PickerSpec>& pickers, float room) {
  float low = 0, high = 0;
  for (const PickerSpec& p : pickers) high = std::max(high, p.width);
  auto taken = [&](float most) {
    float sum = 0;
    for (const PickerSpec& p : pickers) sum += std::min(p.width, most);
    return sum;
  };
  if (taken(high) <= room) return;
  for (int i = 0; i < 24; ++i) (taken((low + high) * 0.5f) <= room ? low : high) = (low + high) * 0.5f;
  for (PickerSpec& p : pickers) p.width = std::floor(std::min(p.width, low));
}

TopBar::Fit TopBar::fit(const ViewModel& view, float width) const {
  const float at_100 = width / look().scale;
  const size_t first = at_100 < kNoCaptions ? 2 : at_100 < kNoQuantization ? 1 : 0;
  Fit f;
  for (size_t i = first; i < std::size(kSteps); ++i) {
    const Step& step = kSteps[i];
    f.step = step;
    auto caption = [&](const char* words) { return step.captions ? std::string(words) : std::string(); };
    f.pickers = {{"Model", kTargetMenu, caption("Target"), target_value(view, step.quantization), target_tooltip(view),
                  view.model || view.model_state == ModelState::loading}};
    if (step.all_pickers) {
      f.pickers.push_back({"Drafter", kDrafterMenu, caption("Drafter"), drafter_value(view), drafter_tooltip(view),
                           view.model && !view.model->drafter.empty()});
      f.pickers.push_back({"Device", kDeviceMenu, caption("Device"), device_value(view),
                           view.model ? view.model->device + ", " + view.model->driver : device_value(view),
                           !view.devices.empty() || view.model});
    }
    f.mode = !view.model ? 0 : step.segment ? mode_segment_width(view) : mode_picker_width(view);
    const bool memory = step.memory > 0 && view.model && view.models.memory.budget > 0;
    if (!memory) f.step.memory = 0;
    float room = width - px(kMargin) * 2 - px(kLogo) - px(kAfterLogo) - scale_and_theme_width(step.scale);
    if (step.word) room -= px(kGap) + text_size(Type::title, "Canopy").x;
    if (memory) room -= px(step.memory) + px(kAroundMemory) * 2;
    if (f.mode > 0) room -= f.mode + px(kGap) * 2;
    room -= px(kGap) * static_cast<float>(f.pickers.size());
    float wanted = 0;
    for (PickerSpec& p : f.pickers) {
      p.width = picker_width(p.caption, p.value);
      wanted += std::min(p.width, px(step.readable));
    }
    share(f.pickers, std::max(room, px(44) * static_cast<float>(f.pickers.size())));
    if (wanted <= room) break;
  }
  return f;
}

void TopBar::draw(const ViewModel& view, CommandSink& sink) {
  const Fit f = fit(view, ImGui::GetWindowWidth());
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetWindowPos();
  const float middle = origin.y + px(kHeight) * 0.5f, top = std::floor(middle - px(kControl) * 0.5f);
  float x = px(kMargin);
  draw_logo(list, {origin.x + x + px(kLogo) * 0.5f, middle}, px(kLogo));
  x += px(kLogo);
  if (f.step.word) {
    draw_text_middle(list, origin.x + x + px(kGap), middle, Type::title, colours().text, "Canopy");
    x += px(kGap) + text_size(Type::title, "Canopy").x;
  }
  ImGui::SetCursorScreenPos({std::floor(origin.x + x + px(kAfterLogo)), top});
  draw_pickers(view, sink, f);
  if (f.step.memory > 0) {
    ImGui::SameLine(0, px(kAroundMemory));
    ImGui::SetCursorPosY(top - origin.y);
    memory_bar(view, sink, px(f.step.memory));
  }
  const float right = origin.x + ImGui::GetWindowWidth() - px(kMargin);
  draw_scale_and_theme(view, sink, right, f.step.scale);
  if (f.mode <= 0) return;
  ImGui::SetCursorScreenPos({right - scale_and_theme_width(f.step.scale) - px(kGap) - f.mode, top});
  if (f.step.segment)
    mode_segment(view, sink);
  else
    mode_picker(view, sink, f.mode);
}

void TopBar::draw_pickers(const ViewModel& view, CommandSink& sink, const Fit& f) {
  const float top = ImGui::GetCursorPosY();
  ImVec2 corner{};
  for (const PickerSpec& p : f.pickers) {
    if (&p != f.pickers.data()) {
      ImGui::SameLine(0, px(kGap));
      ImGui::SetCursorPosY(top);
    }
    if (picker(p.id, p.caption, p.value, p.width, p.has_value)) ImGui::OpenPopup(p.menu);
    tooltip(p.tip.c_str());
    const ImVec2 below = {ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + px(4)};
    if (p.menu == kTargetMenu) {
      corner = below;
      if (const char* next = target_menu_.draw(view, sink, below, !f.step.all_pickers)) ImGui::OpenPopup(next);
    }
    if (p.menu == kDrafterMenu) draw_drafter_menu(view, sink, below);
    if (p.menu == kDeviceMenu) draw_device_menu(view, sink, below);
  }
  if (f.step.all_pickers) return;
  draw_drafter_menu(view, sink, corner);
  draw_device_menu(view, sink, corner);
}

}  // namespace canopy::app
