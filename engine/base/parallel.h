#pragma once
// A parallel loop over a range, divided among the machine's cores.

#include <cstdint>
#include <functional>

namespace canopy {

/// Calls work(begin, end) on disjoint parts that make up [0, count), each at least `least` long (unless count is
/// smaller), on as many threads as there are cores, including the calling one. Returns when all calls have ended; if
/// any threw, rethrows one of the exceptions.
void parallel_for(uint64_t count, uint64_t least, const std::function<void(uint64_t begin, uint64_t end)>& work);

}  // namespace canopy
