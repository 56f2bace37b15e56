#include "app/run/autopilot.h"

#include <filesystem>
#include <system_error>

namespace canopy::app {

AppSettings settings_from(const AppOptions& options) {
  AppSettings settings;
  settings.theme = options.theme;
  settings.layout = options.layout;
  settings.user_scale = options.scale;
  settings.device = options.device;
  settings.quantize = options.quantize;
  settings.kv = options.kv;
  settings.max_tokens = options.max_tokens;
  settings.sampling = options.sampling;
  settings.system_fonts = options.system_fonts;
  std::error_code ignored;
  const std::string standard = default_model_path();
  if (!standard.empty() && std::filesystem::exists(standard, ignored)) settings.default_model = standard;
  return settings;
}

void show_replay(App& app, const AppOptions& options) {
  app.run(RoundsCommand(OpenTrace{options.replay}));
  if (options.round) app.run(RoundsCommand(ShowRound{static_cast<size_t>(*options.round)}));
}

Autopilot::Autopilot(App& app, const std::string& model, const std::string& prompt)
    : app_(app), prompt_(prompt), loads_(!model.empty()) {
  if (loads_) app_.run(OpenModel{model});
}

void Autopilot::step() {
  const ViewModel& view = app_.view();
  if (state_ == State::loading) {
    if (view.model_state == ModelState::ready) state_ = prompt_.empty() ? State::succeeded : State::waiting_to_send;
    const bool cancelled = loads_ && view.cards.empty();
    if (view.model_state == ModelState::none && (cancelled || !view.cards.empty())) state_ = State::failed;
  }
  if (state_ == State::waiting_to_send && view.can_send()) {
    app_.run(SendMessage{prompt_});
    state_ = State::replying;
  }
  if (state_ == State::replying && !view.busy()) {
    const Message* reply = view.last_reply();
    const bool failed = !reply || !reply->result || reply->result->reason == FinishReason::failed;
    state_ = failed ? State::failed : State::succeeded;
  }
}

std::string Autopilot::failure() const {
  if (state_ != State::failed) return "";
  for (auto card = app_.view().cards.rbegin(); card != app_.view().cards.rend(); ++card)
    if (!card->warning) return card->title + ". " + card->detail;
  return app_.view().model_state == ModelState::none ? "Loading was cancelled." : "The reply ended early.";
}

}  // namespace canopy::app
