#pragma once

#include <string>

namespace canopy::app {

/// A line to type or paste a model's path into, with a button beside it; the way in where no file dialog exists.
/// path keeps what was typed. True when Enter or the button asks to open it.
bool model_path_box(std::string& path, float width);

}  // namespace canopy::app
