#pragma once
// Work that takes time and can be cancelled: a load, reading a prompt, a measurement, the check of a recording. Pure.

#include <optional>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

struct Work {
  Progress progress;
  UiCommand cancel;
};

/// What the engine works on now; nothing while it writes or rests.
std::optional<Work> work_under_way(const ViewModel& view);

/// The same of a recording alone: its check, or the drafts behind every token of it.
std::optional<Work> recording_work(const ViewModel& view);

}  // namespace canopy::app
