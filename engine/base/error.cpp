#include "engine/base/error.h"

#ifndef _WIN32
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>

#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"

namespace canopy {
namespace {

#ifdef _WIN32
// Windows sets no such limits.
constexpr int RLIMIT_STACK = 0, RLIMIT_NPROC = 1;

std::optional<uint64_t> limit_of(int) {
  return std::nullopt;
}
#else
std::optional<uint64_t> limit_of(int resource) {
  struct rlimit limit = {};
  if (::getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return limit.rlim_cur;
}
#endif

std::string memory_ran_out() {
  const std::string limited = address_space_words();
  if (limited.empty())
    return "The computer's main memory is exhausted. End other programs, or choose a smaller model or context.";
  return "There is no memory left for this program." + limited + " Raise that limit.";
}

std::string no_thread() {
  constexpr uint64_t usual_stack = 8 << 20;
  std::string text = "A thread could not be started, which needs " +
                     byte_figures(limit_of(RLIMIT_STACK).value_or(usual_stack)) + " of address space for its stack." +
                     address_space_words();
  if (const auto most = limit_of(RLIMIT_NPROC))
    text += " At most " + std::to_string(*most) + " threads and processes of this user are allowed (ulimit -u).";
  return text + " Raise the limits, or end other programs.";
}

std::string words_of(const std::filesystem::filesystem_error& e) {
  return "The file " + shown(e.path1()) + " cannot be used: " + e.code().message() + ".";
}

}  // namespace

std::string address_space_words() {
#ifdef _WIN32
  return "";
#else
  const auto limit = limit_of(RLIMIT_AS);
  if (!limit) return "";
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return " This program may have " + byte_figures(*limit) + " of address space (ulimit -v) and has taken " +
         byte_figures(pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))) + ".";
#endif
}

Error as_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return out_of_memory(memory_ran_out());
  } catch (const std::filesystem::filesystem_error& e) {
    return bad_input(words_of(e));
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::not_enough_memory) return out_of_memory(memory_ran_out());
    // What the standard library throws where a thread cannot be made.
    if (e.code() == std::errc::resource_unavailable_try_again) return out_of_memory(no_thread());
    return bad_input(std::string("The system refused something: ") + e.what() + ".");
  } catch (const std::exception& e) {
    return bad_input(std::string("Unexpected: ") + e.what());
  } catch (...) {
    return bad_input("Something went wrong that gives no reason.");
  }
}

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input: return "bad input";
    case ErrorKind::out_of_memory: return "out of memory";
    case ErrorKind::device_lost: return "device lost";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::cancelled: return "cancelled";
  }
  return "error";
}

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

void log(LogLevel level, std::string_view message) {
  if (static_cast<int>(level) < minimum_level.load(std::memory_order_relaxed) || inside_sink) return;
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
