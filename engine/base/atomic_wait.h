#pragma once
// Sleeping until an atomic number changes. On Windows by the system's own calls: of libstdc++'s waits there, which a
// condition variable stands behind, a wake may be lost up to GCC 12.

#include <atomic>
#include <cstdint>

namespace canopy {

#ifdef _WIN32
/// Returns once `value` is no longer `old`, and whoever changed it has called wake_one or wake_all.
void wait_while(const std::atomic<uint32_t>& value, uint32_t old);
void wake_one(std::atomic<uint32_t>& value);
void wake_all(std::atomic<uint32_t>& value);
#else
inline void wait_while(const std::atomic<uint32_t>& value, uint32_t old) {
  value.wait(old, std::memory_order_acquire);
}
inline void wake_one(std::atomic<uint32_t>& value) {
  value.notify_one();
}
inline void wake_all(std::atomic<uint32_t>& value) {
  value.notify_all();
}
#endif

}  // namespace canopy
