#include "app/app.h"

#include <utility>

namespace canopy::app {

App::App(EngineClient& engine, const AppSettings& settings) : engine_(engine), content_scale_(settings.content_scale) {
  view_.theme = settings.theme;
  view_.user_scale = settings.user_scale;
  view_.default_model = settings.default_model;
  view_.device_selector = settings.device;
  view_.max_tokens = settings.max_tokens;
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
}

void App::run(const UiCommand& command) {
  Effects effects = update(view_, command);
  for (Command& each : effects.engine) engine_.post(std::move(each));
  if (effects.clipboard) ImGui::SetClipboardText(effects.clipboard->c_str());
  if (effects.browse && browse_) browse_();
}

void App::set_browse(std::function<void()> browse) {
  browse_ = std::move(browse);
  view_.file_dialog_available = static_cast<bool>(browse_);
}

}  // namespace canopy::app
