#pragma once
// Background threads that keep cores awake during a computation made of many short dispatches.

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace canopy {

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
