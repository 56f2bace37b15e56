#pragma once
// Work on a range, cut among the machine's cores.

#include <cstdint>
#include <functional>

namespace canopy {

/// Calls work(begin, end) on disjoint parts that make up [0, count), at least `least` long where the range is, on as
/// many threads as there are cores, this one included. Returns when all have ended; of what they throw, one is thrown
/// on.
void parallel_for(uint64_t count, uint64_t least, const std::function<void(uint64_t begin, uint64_t end)>& work);

}  // namespace canopy
