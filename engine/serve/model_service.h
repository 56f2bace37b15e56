#pragma once
// A loaded model served beside the replies of a front end: what clients ask for, told to it as events.

#include <memory>

#include "engine/session/engine_thread.h"

namespace canopy {

/// EngineBackend::serve. The refusals of validate() (serve_options.h) and of the system are thrown.
std::unique_ptr<ModelService> make_model_service(Engine& engine, const Serve& wish, ServiceCallbacks callbacks);

}  // namespace canopy
