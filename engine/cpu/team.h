#pragma once
// The threads that compute a pass together: all go through the same steps, and wait for each other between two.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

namespace canopy::cpu {

/// Memory that is slower than the machine's, as one thread sees it, for measurements: what it reads comes one behind
/// the other at a given rate, while it computes.
class PacedMemory {
 public:
  using Time = std::chrono::steady_clock::time_point;

  PacedMemory() = default;  // the machine's own
  explicit PacedMemory(double gb_s) : ns_a_byte_(gb_s > 0 ? 1 / gb_s : 0) {}

  bool is_emulated() const { return ns_a_byte_ > 0; }
  /// When so many bytes are there that are asked for now.
  Time read(uint64_t bytes, Time now) {
    const std::chrono::duration<double, std::nano> takes(static_cast<double>(bytes) * ns_a_byte_);
    free_ = std::max(free_, now) + std::chrono::duration_cast<Time::duration>(takes);
    return free_;
  }

 private:
  double ns_a_byte_ = 0;
  Time free_{};  // when all is there that was asked for before
};

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
  friend class Reading;
  PacedMemory memory_;
  uint32_t index_ = 0, threads_ = 1;
  float* scratch_ = nullptr;
  float* common_ = nullptr;
  std::atomic<uint32_t>* taken_ = nullptr;
};

/// Stands where a thread reads so many bytes of weights, keys or values, until it has computed with them: with emulated
/// memory that is no shorter than reading them would take.
class Reading {
 public:
  Reading(Worker& worker, uint64_t bytes) {
    if (worker.memory_.is_emulated()) there_ = worker.memory_.read(bytes, std::chrono::steady_clock::now());
  }
  ~Reading() {
    if (there_ != PacedMemory::Time()) wait_until(there_);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  static void wait_until(PacedMemory::Time time);

  PacedMemory::Time there_{};
};

/// What all threads do at once; it may be run any number of times, and must not throw.
struct Step {
  std::function<void(Worker&)> work;
  bool starts_op = false;  // a stop is noticed here
};

class Team {
 public:
  /// So many threads, the caller of run() included. memory: what each of them reads from.
  explicit Team(uint32_t threads, PacedMemory memory = {});
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

  const PacedMemory memory_;
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
