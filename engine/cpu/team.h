#pragma once
// The threads that compute a pass together: all go through the same steps, and wait for each other between two.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

namespace canopy::cpu {

/// One thread at work on a step.
class Worker {
 public:
  /// Takes the next units that nobody has taken, `most` at a time: false where none are left. So a fast core takes
  /// more of them than a slow one.
  bool next(uint32_t units, uint32_t most, uint32_t& first, uint32_t& end) {
    first = taken_->fetch_add(most, std::memory_order_relaxed);
    if (first >= units) return false;
    end = units - first < most ? units : first + most;
    return true;
  }
  uint32_t index() const { return index_; }
  uint32_t threads() const { return threads_; }
  /// Memory of this thread that no step finds again, of as many floats as Team::reserve was told.
  float* scratch() const { return scratch_; }
  /// Memory that all threads have in common, which stays as it is from step to step.
  float* common() const { return common_; }

 private:
  friend class Team;
  uint32_t index_ = 0, threads_ = 1;
  float* scratch_ = nullptr;
  float* common_ = nullptr;
  std::atomic<uint32_t>* taken_ = nullptr;
};

/// What all threads do at once; it may be run any number of times, and must not throw.
struct Step {
  std::function<void(Worker&)> work;
  bool starts_op = false;  // a stop is noticed here
};

class Team {
 public:
  /// So many threads, the caller of run() included.
  explicit Team(uint32_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(threads_.size()) + 1; }

  /// Each thread's scratch, and what all have in common, have at least so many floats from now on. Not while steps run.
  void reserve(uint64_t scratch_floats, uint64_t common_floats);

  /// Runs all steps, each after the last thread has ended the one before. Returns false where a stop was requested
  /// before an op. One caller at a time.
  bool run(std::span<const Step> steps, const std::stop_token& stop = {});

 private:
  void work(uint32_t index, const std::stop_token& stop);
  void go_through(uint32_t index);
  /// Waits until `value` is no longer `old`: first awake, then asleep.
  static void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old, uint32_t spins);

  std::vector<std::vector<float>> scratch_;
  std::vector<float> common_;

  // Of the run that is under way; written before run_ announces it.
  std::span<const Step> steps_;
  const std::stop_token* stop_ = nullptr;
  std::unique_ptr<std::atomic<uint32_t>[]> taken_;  // units of each step
  size_t most_steps_ = 0;

  static constexpr uint32_t kStopped = 0x80000000u;
  alignas(64) std::atomic<uint32_t> run_{0};      // counts runs; announces one
  alignas(64) std::atomic<uint32_t> arrived_{0};  // threads that have ended the step
  alignas(64) std::atomic<uint32_t> step_{0};     // the step that is under way, or kStopped; starts again at 0
  alignas(64) std::atomic<uint32_t> left_{0};     // threads that have ended the run
  std::vector<std::jthread> threads_;
};

}  // namespace canopy::cpu
