#pragma once
// How the model of the window changes: it is opened, loads, and is there; with its device, and with settings that take
// effect when it is loaded.

#include <string>

#include "app/state/view_model.h"

namespace canopy::app {

Effects open_model(ViewModel& view, const std::string& path);
Effects choose_device(ViewModel& view, const std::string& selector);
Effects on_models_command(ViewModel& view, const ModelsCommand& command);

void on_load_progress(ViewModel& view, const LoadProgress& e);
void on_model_ready(ViewModel& view, const ModelReady& e);
/// Call at the end of each load, which is one ModelReady or one Failure. True when that load was replaced by a newer
/// one.
bool ends_superseded_load(ViewModel& view);

}  // namespace canopy::app
