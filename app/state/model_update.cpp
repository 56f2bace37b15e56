#include "app/state/model_update.h"

#include <algorithm>
#include <utility>

#include "app/state/chat_update.h"

namespace canopy::app {
namespace {

/// Loads the present model again, so that a changed setting takes effect. Does nothing without a model.
Effects load_again(ViewModel& view) {
  return view.model_path.empty() || view.model_state == ModelState::none ? Effects{}
                                                                         : open_model(view, view.model_path);
}

}  // namespace

void on_load_progress(ViewModel& view, const LoadProgress& e) {
  if (view.model_state != ModelState::loading) return;
  view.loading = {e.stage, e.done, e.total, e.in_bytes, e.seconds_left};
}

bool ends_superseded_load(ViewModel& view) {
  if (view.superseded_loads == 0) return false;
  --view.superseded_loads;
  return true;
}

void on_model_ready(ViewModel& view, const ModelReady& e) {
  view.model = e;
  view.idle.opened.reset();
  view.context_used = 0;
  if (ends_superseded_load(view)) return;
  view.model_state = ModelState::ready;
  view.loading = {};
  remember_model(view.models, view.model_path);
  for (const std::string& warning : e.warnings) add_card(view, {0, true, "The model works with a limit", warning, {}});
}

Effects open_model(ViewModel& view, const std::string& path) {
  if (path.empty()) return {};
  Effects effects = stop_reply(view);
  if (view.model_state == ModelState::loading) {
    effects.engine.emplace_back(CancelLoad{});
    ++view.superseded_loads;
  }
  begin_load(view, path);
  LoadModel load;
  load.path = path;
  load.device = view.device_selector;
  load.quantize = view.quantize;
  load.kv = view.kv;
  ask_for(view.models, load);
  effects.engine.push_back(std::move(load));
  return effects;
}

Effects choose_device(ViewModel& view, const std::string& selector) {
  view.device_selector = selector;
  return load_again(view);
}

Effects on_models_command(ViewModel& view, const ModelsCommand& command) {
  if (std::holds_alternative<LookForModels>(command)) {
    Effects effects;
    effects.search = begin_search(view.models, view.model_path);
    effects.search->standard = view.default_model;
    return effects;
  }
  choose(view.models, command);
  return std::holds_alternative<ReleaseWhenIdle>(command) ? Effects{} : load_again(view);
}

void begin_load(ViewModel& view, const std::string& path) {
  std::erase_if(view.cards, [](const Card& c) { return c.about_model && c.action != Card::Action::run_again; });
  view.model_path = path;
  view.model_state = ModelState::loading;
  view.loading = {"Opening " + file_name(path), 0, 0};
  view.path_box_shown = false;
}

}  // namespace canopy::app
