#include "app/bars/top_bar.h"

#include <algorithm>
#include <cmath>

#include "app/bars/layout_switch.h"
#include "app/bars/memory_bar.h"
#include "app/bars/mode_segment.h"
#include "app/bars/view_menu.h"
#include "app/look/widgets.h"
#include "app/models/device_words.h"
#include "app/panels/actions.h"
#include "app/panels/term_words.h"

namespace canopy::app {
namespace {

constexpr float kHeight = 48, kControl = 32, kMargin = 12, kGap = 8;
constexpr float kLogo = 24, kAfterLogo = 18, kAfterSwitch = 14, kAroundMemory = 14;
constexpr float kNoQuantization = 1440, kNoCaptions = 1360;  // window widths at 100% below which these are left out

}  // namespace

/// What the bar shows; each step of the list shows a little less.
struct TopBarStep {
  bool quantization, captions, word;
  float memory;  // width of the memory bar; 0: none
  bool segment, scale, all_pickers;
  float readable;  // least width of a picker, unless its value is shorter
};

namespace {

constexpr TopBarStep kSteps[] = {
    {true, true, true, 250, true, true, true, 240},   {true, true, true, 150, true, true, true, 240},
    {true, false, true, 150, true, true, true, 240},  {false, true, true, 250, true, true, true, 200},
    {false, true, true, 150, true, true, true, 200},  {false, false, true, 250, true, true, true, 150},
    {false, false, true, 150, true, true, true, 120}, {false, false, false, 110, true, true, true, 110},
    {false, false, false, 0, true, true, true, 100},  {false, false, false, 0, false, true, true, 90},
    {false, false, false, 0, false, true, false, 90}, {false, false, false, 0, false, false, false, 70},
};
constexpr size_t kWithoutQuantization = 3, kWithoutCaptions = 5;  // number of steps
constexpr size_t kWholeNames = 9;  // before this step, names are shown whole if one of the steps allows it

std::string without_end(std::string text, const std::string& end) {
  if (!end.empty() && text.ends_with(" " + end)) text.resize(text.size() - end.size() - 1);
  return text;
}

std::string target_value(const ViewModel& view, bool quantization) {
  if (view.replaying()) return view.replay.origin().target;
  if (view.model_state == ModelState::loading) return file_name(view.model_path);
  if (!view.model) return "none";
  const std::string title = model_title(*view.model);
  const std::string name = quantization ? title : without_end(title, view.model->quantization);
  return view.model_state == ModelState::released ? name + ", released" : name;
}

std::string drafter_value(const ViewModel& view) {
  if (view.replaying()) return view.replay.origin().drafter.empty() ? "none" : view.replay.origin().drafter;
  if (!view.model || view.model->drafter.empty()) return "none";
  const std::string& name = view.model->drafter;
  return name.ends_with(".gguf") ? name.substr(0, name.size() - 5) : name;
}

std::string device_value(const ViewModel& view) {
  if (view.replaying()) return view.replay.origin().device.empty() ? "not recorded" : view.replay.origin().device;
  if (view.model) return view.model->device;
  for (const DeviceChoice& d : view.devices)
    if (d.selector == view.device_selector && !view.device_selector.empty()) return d.name;
  for (const DeviceChoice& d : view.devices)
    if (d.preferred) return d.name;
  return "none";
}

/// The first line of a picker's tooltip while a recording is shown.
std::string replay_tooltip(const ViewModel& view) {
  const ReplayOrigin& origin = view.replay.origin();
  if (!origin.times.empty()) {
    return "Nothing was recorded there: the times are " + origin.times + ", the text and the guesses recorded" +
           (origin.recorded.empty() ? "" : ", " + origin.recorded);
  }
  return "Replayed: what " + file_name(view.rounds.trace_path) + " was recorded with" +
         (origin.recorded.empty() ? "" : ", " + origin.recorded);
}

std::string target_tooltip(const ViewModel& view) {
  if (view.replaying()) return replay_tooltip(view);
  if (!view.model) return "Choose a model  Ctrl+O";
  const ModelReady& model = *view.model;
  std::string words = model.file_name;
  for (const std::string* note : {&model.weights_note, &model.kernels_note}) words += note->empty() ? "" : "\n" + *note;
  if (view.model_state == ModelState::released) words += "\n" + released_words(view);
  return words;
}

std::string drafter_tooltip(const ViewModel& view) {
  if (view.replaying()) return replay_tooltip(view);
  if (!view.model) return "Chosen with the model";
  if (view.model->drafter.empty()) return "No drafter: every token is the target's own";
  return view.model->drafter + "\nDFlash, blocks of " + std::to_string(view.model->block);
}

std::string device_tooltip(const ViewModel& view, const std::string& device) {
  if (view.replaying()) return replay_tooltip(view) + "\n" + device;
  if (!view.model) return device;
  const std::string backend = backend_words(view.devices, view.model->backend);
  return device + ", " + view.model->driver + (backend.empty() ? "" : "\nRuns with " + backend);
}

/// What marks the values as those of a recording; times that were not recorded say so.
std::string replayed_words(const ViewModel& view) {
  std::string words = view.replay.origin().times;
  if (words.empty()) return "Replayed";
  if (words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return elided(Type::secondary, words, px(140));
}

float replayed_width(const ViewModel& view) {
  return text_size(Type::secondary, replayed_words(view)).x + px(16);
}

/// Draws a tag that marks the values of the pickers as those of a recording, not of the loaded model.
void draw_replayed(const ViewModel& view, ImVec2 at) {
  const Theme& t = colours();
  const float width = replayed_width(view), height = px(22);
  const ImVec2 a = {at.x, std::floor(at.y - height * 0.5f)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, {a.x + width, a.y + height}, t.bonus_bg, px(4));
  draw_text_middle(list, a.x + px(8), at.y, Type::secondary, t.bonus_text, replayed_words(view));
  ImGui::SetCursorScreenPos(a);
  ImGui::InvisibleButton("Replayed", {width, height});
  tooltip(replay_tooltip(view).c_str());
}

ButtonSpec view_button(bool word) {
  ButtonSpec spec{"View", Icon::panels};
  spec.show_label = word;
  spec.tooltip = "Panels, layout, scale, theme, motion, keys";
  return spec;
}

ButtonSpec tour_button() {
  ButtonSpec spec{"Tour", Icon::none};
  spec.tooltip = "What all this is, in seven steps";
  return spec;
}

constexpr float kScaleFigure = 36, kScaleGap = 4;

/// Width of the controls at the right end. scale: with the scale control; word: with "View" beside its icon.
float right_end_width(bool scale, bool word) {
  return button_size(tour_button()).x + px(4) + px(28) + px(4) + button_size(view_button(word)).x +
         (scale ? scale_control_width(kScaleFigure, kScaleGap) + px(4) : 0);
}

void draw_right_end(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, float right,
                    bool scale, bool word) {
  const float y = ImGui::GetWindowPos().y + std::floor((px(kHeight) - px(28)) * 0.5f);
  ImGui::SetCursorScreenPos({right - right_end_width(scale, word), y});
  if (scale) {
    draw_scale_control(view, sink, kScaleFigure, kScaleGap);
    ImGui::SetCursorScreenPos({right - right_end_width(false, word), y});
  }
  if (button(tour_button())) sink.post(ShellCommand(ShowTour{}));
  ImGui::SameLine(0, px(4));
  ButtonSpec theme{"Theme", Icon::theme};
  theme.show_label = false;
  theme.tooltip = "Dark, light or projector  Ctrl+Shift+L";
  if (button(theme)) sink.post(SetTheme{next_theme(view.theme)});
  ImGui::SameLine(0, px(4));
  if (button(view_button(word))) ImGui::OpenPopup(kViewMenu);
  draw_view_menu(view, sink, panels, {right, y + px(28) + px(6)});
}

}  // namespace

struct TopBarPicker {
  const char *id, *menu;
  std::string caption, value, tip;
  bool has_value = true;
  float width = 0;
};

struct TopBar::Fit {
  TopBarStep step;
  std::vector<TopBarPicker> pickers;
  float mode = 0;      // width of the mode control; 0 without a model
  float room = 0;      // for the pickers
  float wanted = 0;    // width at which the pickers show their values whole
  float readable = 0;  // least width of the pickers
};

/// Gives every picker the width it needs; if there is too little room, cuts the widest ones to the same width.
static void share(std::vector<TopBarPicker>& pickers, float room) {
  float low = 0, high = 0;
  for (const TopBarPicker& p : pickers) high = std::max(high, p.width);
  auto taken = [&](float most) {
    float sum = 0;
    for (const TopBarPicker& p : pickers) sum += std::min(p.width, most);
    return sum;
  };
  if (taken(high) <= room) return;
  for (int i = 0; i < 24; ++i) (taken((low + high) * 0.5f) <= room ? low : high) = (low + high) * 0.5f;
  for (TopBarPicker& p : pickers) p.width = std::floor(std::min(p.width, low));
}

/// Watch and What if have words for newcomers.
static std::vector<TopBarPicker> pickers_of(const ViewModel& view, const TopBarStep& step) {
  const bool watch = view.shell.layout != WindowLayout::lab;
  auto caption = [&](const char* words) { return step.captions ? std::string(words) : std::string(); };
  std::vector<TopBarPicker> pickers = {{"Model", kTargetMenu, caption(watch ? "Big model" : "Target"),
                                        target_value(view, step.quantization), target_tooltip(view),
                                        view.replaying() || view.model || view.model_state == ModelState::loading}};
  if (step.all_pickers) {
    const std::string device = device_value(view);
    pickers.push_back(
        {"Drafter", kDrafterMenu, caption("Drafter"), drafter_value(view), drafter_tooltip(view),
         view.replaying() ? !view.replay.origin().drafter.empty() : view.model && !view.model->drafter.empty()});
    pickers.push_back({"Device", kDeviceMenu, caption(watch ? "Runs on" : "Device"), without_brackets(device),
                       device_tooltip(view, device), view.replaying() || !view.devices.empty() || view.model});
  }
  for (TopBarPicker& p : pickers) p.width = picker_width(p.caption, p.value);
  return pickers;
}

TopBar::Fit TopBar::fit_step(const ViewModel& view, float width, size_t index) const {
  Fit f;
  f.step = kSteps[index];
  f.pickers = pickers_of(view, f.step);
  // While a recording is shown, controls of the loaded model are left out, as they would contradict it.
  // Watch has no mode to choose and no memory to look after.
  const bool watch = view.shell.layout != WindowLayout::lab;
  f.mode = watch || !view.model || view.replaying() ? 0
           : f.step.segment                         ? mode_segment_width(view)
                                                    : mode_picker_width(view);
  if (watch || !view.model || view.replaying() || view.models.memory.budget == 0) f.step.memory = 0;
  if (watch) f.step.scale = false;
  f.room = width - px(kMargin) * 2 - px(kLogo) - px(kAfterLogo) - layout_switch_width(view) - px(kAfterSwitch) -
           right_end_width(f.step.scale, f.step.captions);
  if (f.step.word) f.room -= px(kGap) + text_size(Type::title, "Canopy").x;
  if (f.step.memory > 0) f.room -= px(f.step.memory) + px(kAroundMemory) * 2;
  if (f.mode > 0) f.room -= f.mode + px(kGap) * 2;
  if (view.replaying()) f.room -= replayed_width(view) + px(kGap);
  f.room -= px(kGap) * static_cast<float>(f.pickers.size());
  for (const TopBarPicker& p : f.pickers) {
    f.wanted += p.width;
    f.readable += std::min(p.width, px(f.step.readable));
  }
  share(f.pickers, std::max(f.room, px(44) * static_cast<float>(f.pickers.size())));
  return f;
}

/// The first step at which all names are shown whole; if none of the better steps allows it, the first at which the
/// names are readable.
TopBar::Fit TopBar::fit(const ViewModel& view, float width) const {
  const float at_100 = width / look().scale;
  const size_t first = at_100 < kNoCaptions ? kWithoutCaptions : at_100 < kNoQuantization ? kWithoutQuantization : 0;
  for (size_t i = first; i < kWholeNames; ++i)
    if (Fit f = fit_step(view, width, i); f.wanted <= f.room) return f;
  for (size_t i = first; i + 1 < std::size(kSteps); ++i)
    if (Fit f = fit_step(view, width, i); f.readable <= f.room) return f;
  return fit_step(view, width, std::size(kSteps) - 1);
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
  layout_switch(view, sink);
  ImGui::SetCursorScreenPos(
      {std::floor(origin.x + x + px(kAfterLogo) + layout_switch_width(view) + px(kAfterSwitch)), top});
  draw_pickers(view, sink, f);
  if (f.step.memory > 0) {
    ImGui::SameLine(0, px(kAroundMemory));
    ImGui::SetCursorPosY(top - origin.y);
    memory_bar(view, sink, px(f.step.memory));
  }
  if (view.replaying()) {
    ImGui::SameLine(0, px(kGap));
    draw_replayed(view, {ImGui::GetCursorScreenPos().x, middle});
  }
  const float right = origin.x + ImGui::GetWindowWidth() - px(kMargin);
  draw_right_end(view, sink, panels_, right, f.step.scale, f.step.captions);
  if (f.mode <= 0) return;
  ImGui::SetCursorScreenPos({right - right_end_width(f.step.scale, f.step.captions) - px(kGap) - f.mode, top});
  if (f.step.segment)
    mode_segment(view, sink);
  else
    mode_picker(view, sink, f.mode);
}

void TopBar::draw_pickers(const ViewModel& view, CommandSink& sink, const Fit& f) {
  const float top = ImGui::GetCursorPosY();
  ImVec2 corner{};
  for (const TopBarPicker& p : f.pickers) {
    if (&p != f.pickers.data()) {
      ImGui::SameLine(0, px(kGap));
      ImGui::SetCursorPosY(top);
    }
    if (picker(p.id, p.caption, p.value, p.width, p.has_value)) ImGui::OpenPopup(p.menu);
    term_tooltip(p.id, p.tip);
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
