#pragma once
// Where what the engine logs goes in a program: to standard error.

#include <iostream>
#include <string>
#include <utility>

#include "engine/base/log.h"

namespace canopy::app {

/// Sends warnings and errors of the engine to standard error as "PROGRAM: warning: …". Messages of the validation layer
/// (CANOPY_VALIDATION=core or sync) are among them. `also` gets all messages, of level info too.
inline void log_to_stderr(std::string program, LogSink also = {}) {
  const LogLevel least = also ? LogLevel::info : LogLevel::warning;
  set_log_sink(
      [program = std::move(program), also = std::move(also)](LogLevel level, std::string_view message) {
        if (also) also(level, message);
        if (level < LogLevel::warning) return;
        std::string line = program + ": " + std::string(to_string(level)) + ": " + std::string(message) + "\n";
        std::cerr << line << std::flush;  // in one piece: other threads write there too
      },
      least);
}

}  // namespace canopy::app
