#include "app/app.h"

#include <imgui_internal.h>

#include <algorithm>
#include <utility>

#include "app/options.h"
#include "app/rounds/open_trace.h"
#include "app/rounds/trace_log.h"

namespace canopy::app {

App::App(EngineClient& engine, const AppSettings& settings)
    : engine_(engine),
      content_scale_(settings.content_scale),
      keeper_(settings.settings_file, settings.saved),
      remembered_(settings.saved) {
  view_.theme = settings.theme;
  view_.user_scale = settings.user_scale;
  view_.default_model = settings.default_model;
  view_.device_selector = settings.device;
  view_.quantize = settings.quantize;
  view_.max_tokens = settings.max_tokens;
  view_.sampling = settings.sampling;
  view_.drafting = settings.saved.drafting;
  if (!settings.settings_note.empty()) warn(view_, "The settings were not read", settings.settings_note);
  view_.devices = engine.devices();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  io.ConfigInputTextCursorBlink = false;  // a blinking caret would keep an idle window drawing
  io.ConfigNavCursorVisibleAuto = true;
  io.UserData = &look_;
  look_.fonts = load_fonts(settings.system_fonts);
  look_.theme = &theme(view_.theme);
}

App::~App() {
  ImGui::GetIO().UserData = nullptr;
}

bool App::pump() {
  const std::vector<Event> events = engine_.poll();
  for (const Event& event : events) update(view_, event);
  return !events.empty();
}

void App::prepare_frame() {
  const float scale = view_.user_scale * content_scale_;
  if (styled_theme_ == view_.theme && look_.scale == scale) return;
  look_.theme = &theme(view_.theme);
  look_.scale = scale;
  ImGuiStyle& style = ImGui::GetStyle();
  apply_style(style, *look_.theme, scale);
  style.FontScaleMain = view_.user_scale;
  style.FontScaleDpi = content_scale_;
  style.FontSizeBase = font_size(Type::base);
  styled_theme_ = view_.theme;
}

void App::draw() {
  shell_.draw(view_, sink_);
  for (const UiCommand& command : sink_.take()) run(command);
  keep_settings(false);
}

bool App::input_waits() const {
  return ImGui::GetCurrentContext()->InputEventsQueue.Size > 0;
}

void App::set_window_size(uint32_t width, uint32_t height) {
  remembered_.width = std::clamp(width, kMinSide, kMaxSide);
  remembered_.height = std::clamp(height, kMinSide, kMaxSide);
}

void App::remember() {
  keep_settings(true);
}

void App::keep_settings(bool now) {
  remembered_.theme = view_.theme;
  remembered_.scale = view_.user_scale;
  remembered_.sampling = view_.sampling;
  remembered_.drafting = view_.drafting;
  // A slider that is being dragged changes with every frame; one write at its end is enough.
  if (!now && (ImGui::IsMouseDown(ImGuiMouseButton_Left) || !keeper_.worth_saving_at_once(remembered_))) return;
  const std::string failure = keeper_.keep(remembered_);
  if (!failure.empty()) warn(view_, "The settings cannot be saved", failure);
}

void App::run(const UiCommand& command) {
  if (const auto* open = std::get_if<OpenModel>(&command); open && looks_like_trace(open->path)) {
    // The dialog, the path box, a dropped file and the command line all come here.
    run(OpenTrace{open->path});
    return;
  }
  Effects effects = update(view_, command);
  for (Command& each : effects.engine) engine_.post(std::move(each));
  if (effects.clipboard) ImGui::SetClipboardText(effects.clipboard->c_str());
  if (effects.browse && browse_) browse_();
  if (effects.trace) open_trace(view_, *effects.trace);
  if (effects.demo) watch_demo(view_, *effects.demo);
}

void App::set_browse(std::function<void()> browse) {
  browse_ = std::move(browse);
  view_.file_dialog_available = static_cast<bool>(browse_);
}

}  // namespace canopy::app
