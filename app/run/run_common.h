#pragma once

#include <filesystem>
#include <system_error>

#include "app/run/app.h"
#include "app/settings/options.h"

namespace canopy::app {

/// Opens the trace that the command line names, on the round that it names.
void show_replay(App& app, const AppOptions& options);

inline AppSettings settings_from(const AppOptions& options) {
  AppSettings settings;
  settings.theme = options.theme;
  settings.user_scale = options.scale;
  settings.device = options.device;
  settings.quantize = options.quantize;
  settings.max_tokens = options.max_tokens;
  settings.sampling = options.sampling;
  settings.system_fonts = options.system_fonts;
  std::error_code ignored;
  const std::string standard = default_model_path();
  if (!standard.empty() && std::filesystem::exists(standard, ignored)) settings.default_model = standard;
  return settings;
}

}  // namespace canopy::app
