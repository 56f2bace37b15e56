#pragma once
// The log sink of a program: the engine's messages go to standard error.

#include <iostream>
#include <string>
#include <utility>

#include "engine/base/log.h"

namespace canopy::app {

/// Sends the engine's warnings and errors to standard error as "PROGRAM: warning: …", those of the Vulkan validation
/// layer (CANOPY_VALIDATION=core or sync) included. `also` receives every message, those of level info too.
inline void log_to_stderr(std::string program, LogSink also = {}) {
  const LogLevel least = also ? LogLevel::info : LogLevel::warning;
  set_log_sink(
      [program = std::move(program), also = std::move(also)](LogLevel level, std::string_view message) {
        if (also) also(level, message);
        if (level < LogLevel::warning) return;
        std::string line = program + ": " + std::string(to_string(level)) + ": " + std::string(message) + "\n";
        std::cerr << line << std::flush;  // written at once, as other threads write to standard error too
      },
      least);
}

}  // namespace canopy::app
