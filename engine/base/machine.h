#pragma once
// What the system gives this process: memory and cores, within the limits of a container (cgroup v2).

#include <cstdint>
#include <string>

namespace canopy {

struct SystemMemory {
  uint64_t total = 0;      // bytes that this process could ever have: the machine's, or its container's limit
  uint64_t available = 0;  // that it could take now without pushing others out
};
/// Where the system does not tell, both are kUnknownMemory. `root` is put before /proc and /sys, for tests.
SystemMemory system_memory(const std::string& root = "");
inline constexpr uint64_t kUnknownMemory = uint64_t{1} << 62;  // far from overflow when added to

/// Threads that computing should take: one for each physical core that this process may run on, and no more than the
/// time its container is given. At least 1.
uint32_t usable_cores(const std::string& root = "");

}  // namespace canopy
