#pragma once
// Where what the engine logs goes in a program: to standard error.

#include <iostream>
#include <string>
#include <utility>

#include "engine/base/log.h"

namespace canopy::app {

/// Sends warnings and errors of the engine to standard error as "PROGRAM: warning: …". Messages of the validation layer
/// (CANOPY_VALIDATION=core or sync) are among them.
inline void log_to_stderr(std::string program) {
  set_log_sink(
      [program = std::move(program)](LogLevel level, std::string_view message) {
        std::string line = program + ": " + std::string(to_string(level)) + ": " + std::string(message) + "\n";
        std::cerr << line << std::flush;  // in one piece: other threads write there too
      },
      LogLevel::warning);
}

}  // namespace canopy::app
