#include "engine/base/log.h"

#include <atomic>
#include <limits>
#include <mutex>
#include <utility>

#include "engine/base/printable.h"

namespace canopy {
namespace {

constexpr int off = std::numeric_limits<int>::max();
constexpr size_t max_message_bytes = 16 * 1024;

std::atomic<int> minimum_level{off};
thread_local bool inside_sink = false;

struct SinkSlot {
  std::mutex mutex;  // held while the sink runs: calls never overlap
  LogSink sink;
};

// Never destroyed: threads may log while the process ends.
SinkSlot& slot() {
  static auto* instance = new SinkSlot;
  return *instance;
}

}  // namespace

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "log";
}

void set_log_sink(LogSink sink, LogLevel minimum) {
  if (inside_sink) return;  // the slot is locked by this very thread
  const std::lock_guard lock(slot().mutex);
  minimum_level = sink ? static_cast<int>(minimum) : off;
  slot().sink = std::move(sink);
}

bool log_enabled(LogLevel level) {
  return static_cast<int>(level) >= minimum_level.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message) {
  if (!log_enabled(level) || inside_sink) return;
  const std::string safe = printable(message, max_message_bytes, LineBreaks::keep);
  const std::lock_guard lock(slot().mutex);
  if (!slot().sink) return;
  inside_sink = true;
  try {
    slot().sink(level, safe);
  } catch (...) {
    // Ignored: an error of the log must not make the logged operation fail.
  }
  inside_sink = false;
}

}  // namespace canopy
