#pragma once
// A parallel loop over a range, divided among the machine's cores.

#include <cstdint>
#include <functional>

namespace canopy {

/// Calls work(begin, end) on disjoint parts that make up [0, count), each at least `least` long (unless count is
/// smaller), on as many threads as there are cores, including the calling one. Returns when all calls have ended; if
/// any threw, rethrows one of the exceptions.
void parallel_for(uint64_t count, uint64_t least, const std::function<void(uint64_t begin, uint64_t end)>& work);

/// Sets [begin, end) to the next piece that nobody has taken; false when none is left.
using TakeNext = std::function<bool(uint64_t& begin, uint64_t& end)>;

/// Calls work(next) on as many threads as there are cores (fewer where there are fewer pieces), including the calling
/// one; all of them together take [0, count) in ascending pieces of `piece`, so that what they read comes in order and
/// none waits for a slow one. Once a call throws, no piece is handed out any more. Returns when all calls have ended;
/// rethrows one of the exceptions. `piece` is at least 1.
void parallel_in_order(uint64_t count, uint64_t piece, const std::function<void(const TakeNext& next)>& work);

}  // namespace canopy
