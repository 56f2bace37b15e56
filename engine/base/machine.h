#pragma once
// The machine: the memory and cores that this process has, what others use of it, loops divided among the cores, and
// keeping cores awake.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace canopy {

// What the system gives this process: memory and cores, within the limits of a container (cgroup v2).

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

/// The time of all cores since the machine was started, in seconds, and what of it went to this process.
struct ProcessorTime {
  double busy = 0, all = 0;
  double own = 0;
};
/// Nothing where the system does not tell. `root` as above.
std::optional<ProcessorTime> processor_time(const std::string& root = "");

/// The share of the processor, 0 to 1, that others than this process used between two moments; nothing where less than
/// a tenth of a second of one core lies between them.
std::optional<double> share_of_others(const ProcessorTime& before, const ProcessorTime& after);

/// Whether the machine is known to run on its battery.
bool on_battery(const std::string& root = "");

// A parallel loop over a range, divided among the machine's cores.

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

/// Background threads that keep cores awake during a computation made of many short dispatches.
///
/// A software device hands each dispatch to its threads and sleeps until they are done, some hundred times a pass.
/// Waking a core that has nothing else to do takes 20 to 50 us in a virtual machine: as long as the dispatch itself.
/// While a Hold exists, threads of the lowest class (SCHED_IDLE: they use only idle cores and yield at once to other
/// threads) keep the cores awake; 1 ms after the last Hold ends, they sleep. On systems without that class no threads
/// are started, and a Hold has no effect.
class AwakeCores {
 public:
  AwakeCores();
  ~AwakeCores();
  AwakeCores(const AwakeCores&) = delete;
  AwakeCores& operator=(const AwakeCores&) = delete;

  class Hold {
   public:
    explicit Hold(AwakeCores& cores);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    AwakeCores& cores_;
  };

 private:
  void keep_awake();

  static constexpr uint32_t kStop = 1u << 31;
  std::atomic<uint32_t> holds_ = 0;  // and kStop
  std::vector<std::jthread> threads_;
};

}  // namespace canopy
