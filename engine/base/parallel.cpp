#include "engine/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace canopy {

namespace {

/// Calls run(0) to run(parts - 1), each on its own thread, the first on this one.
void run_beside(uint64_t parts, const std::function<void(uint64_t part)>& run) {
  std::vector<std::exception_ptr> failures(parts);
  const auto guarded = [&](uint64_t part) {
    try {
      run(part);
    } catch (...) {
      failures[part] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (uint64_t part = 1; part < parts; ++part) {
      try {
        threads.emplace_back(guarded, part);
      } catch (const std::system_error&) {
        guarded(part);  // no further thread could be started: run this part here
      }
    }
    guarded(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

uint64_t cores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

void parallel_for(uint64_t count, uint64_t least, const std::function<void(uint64_t begin, uint64_t end)>& work) {
  if (count == 0) return;
  const uint64_t parts = std::clamp<uint64_t>(count / std::max<uint64_t>(least, 1), 1, cores());
  run_beside(parts, [&](uint64_t part) { work(count * part / parts, count * (part + 1) / parts); });
}

void parallel_in_order(uint64_t count, uint64_t piece, const std::function<void(const TakeNext& next)>& work) {
  if (count == 0) return;
  std::atomic<uint64_t> taken{0};  // pieces
  const uint64_t pieces = (count - 1) / piece + 1;
  const TakeNext next = [&](uint64_t& begin, uint64_t& end) {
    const uint64_t index = taken.fetch_add(1, std::memory_order_relaxed);
    if (index >= pieces) return false;
    begin = index * piece;
    end = std::min(count, begin + piece);
    return true;
  };
  run_beside(std::min(pieces, cores()), [&](uint64_t) {
    try {
      work(next);
    } catch (...) {
      taken = pieces;
      throw;
    }
  });
}

}  // namespace canopy
