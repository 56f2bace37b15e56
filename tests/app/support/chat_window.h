#pragma once
// State and disk of a window without drawing, with the calls that App makes between them.

#include <filesystem>

#include "app/state/chat_store.h"
#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::test {

class ChatWindow {
 public:
  /// model: the one that is loaded, ready to answer.
  explicit ChatWindow(const std::filesystem::path& folder, const ModelReady& model = small_model())
      : desk(folder.string()) {
    view.chat.now_ms = 1'700'000'000'000;
    desk.begin(view);
    event(model);
    view.model_state = app::ModelState::ready;
  }

  app::Effects run(const app::UiCommand& command) {
    view.chat.now_ms += 1000;
    app::Effects effects = app::update(view, command);
    desk.run(view, command, effects);
    return effects;
  }
  void event(const Event& event) {
    app::update(view, event);
    desk.keep(view);
  }

  app::ViewModel view;
  app::ChatDesk desk;
};

}  // namespace canopy::test
