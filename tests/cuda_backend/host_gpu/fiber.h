#pragma once
// A thread of a block as a coroutine with a stack of its own: it runs until it waits for others, then goes on where it
// was. Fibers of one block run on one thread of the processor, in turns.

#include <cstddef>
#include <memory>

namespace canopy::host_gpu {

class Fiber {
 public:
  static constexpr size_t kStackBytes = 64 << 10;

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Prepares a call of entry(argument), which must not throw, for the next resume(). The fiber before must have ended.
  void prepare(void (*entry)(void*), void* argument);
  /// Runs it until it calls pause() or ends.
  void resume();
  bool ended() const { return ended_; }
  /// To be called by the fiber itself: goes back to where resume() was called.
  void pause();

 private:
  struct Registers;
  static void run(Fiber* fiber);

  std::unique_ptr<std::byte[]> stack_;
  std::unique_ptr<Registers> registers_;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace canopy::host_gpu
