#pragma once
// The whole window in Watch with a recorded run, drawn into pictures.

#include <algorithm>
#include <optional>
#include <string>

#include "app/run.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::test {

struct WatchShot {
  std::string name;
  uint32_t width, height;
  float scale = 1;
  app::ThemeKind theme = app::ThemeKind::dark;
};

/// Watch on a pass of which many guesses were right; by default of the demo. trace: a file within the sources.
struct WatchWindow {
  explicit WatchWindow(const WatchShot& shot, const char* trace = "/assets/demos/code.canopytrace") {
    engine.devices_ = some_devices();
    app::AppSettings settings;
    settings.theme = shot.theme;
    settings.user_scale = shot.scale;
    settings.system_fonts = false;
    settings.saved.reduced_motion = true;
    window.emplace(engine, settings, shot.width, shot.height, false);
    app().run(app::OpenModel{std::string(CANOPY_SOURCE_DIR) + trace});
    const app::RoundLog& log = *app().view().rounds.log;
    // The first passes of a reply are seldom typical.
    size_t best = std::min<size_t>(5, log.rounds() - 1);
    for (size_t i = log.rounds() > 10 ? best : 0; i < std::min<size_t>(log.rounds(), 30); ++i)
      if (log.summary(i).accepted > log.summary(best).accepted) best = i;
    app().run(app::RoundsCommand(app::ShowRound{best}));
  }
  app::App& app() { return window->app(); }

  ScriptedEngine engine;
  std::optional<app::Headless> window;
};

}  // namespace canopy::test
