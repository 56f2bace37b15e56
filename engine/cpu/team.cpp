#include "engine/cpu/team.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/base/atomic_wait.h"

namespace canopy::cpu {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A pass is hundreds of steps of some microseconds: between two, threads wait awake for about as long as waking one
// takes. Between two passes the host works for a while, so they stay awake longer; then they sleep.
constexpr uint32_t kSpinsInPass = 2000;
constexpr uint32_t kSpinsBetween = 10000;

}  // namespace

void Reading::wait_until(PacedMemory::Time time) {
  while (std::chrono::steady_clock::now() < time) pause_briefly();
}

Team::Team(uint32_t threads, PacedMemory memory) : memory_(memory), scratch_(threads) {
  for (uint32_t i = 1; i < threads; ++i) {
    threads_.emplace_back([this, i](const std::stop_token& stop) { work(i, stop); });
  }
}

Team::~Team() {
  for (std::jthread& thread : threads_) thread.request_stop();
  run_.fetch_add(1, std::memory_order_release);
  wake_all(run_);
  threads_.clear();
}

void Team::reserve(uint64_t scratch_floats, uint64_t common_floats) {
  for (std::vector<float>& memory : scratch_) {
    if (memory.size() < scratch_floats) memory.resize(scratch_floats);
  }
  if (common_.size() < common_floats) common_.resize(common_floats);
}

void Team::wait_for_change(const std::atomic<uint32_t>& value, uint32_t old, uint32_t spins) {
  for (uint32_t i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_briefly();
  }
  wait_while(value, old);
}

bool Team::run(std::span<const Step> steps, const std::stop_token& stop) {
  if (steps.empty()) return true;
  if (stop.stop_requested()) return false;
  if (steps.size() > most_steps_) {
    most_steps_ = steps.size();
    taken_ = std::make_unique<std::atomic<uint32_t>[]>(most_steps_);
  }
  for (size_t i = 0; i < steps.size(); ++i) taken_[i].store(0, std::memory_order_relaxed);
  steps_ = steps;
  stop_ = &stop;
  arrived_.store(0, std::memory_order_relaxed);
  step_.store(0, std::memory_order_relaxed);
  left_.store(0, std::memory_order_relaxed);
  run_.fetch_add(1, std::memory_order_release);
  wake_all(run_);
  go_through(0);
  // Nobody may still look at this run's steps when the next is prepared.
  const auto others = static_cast<uint32_t>(threads_.size());
  for (uint32_t left = left_.load(std::memory_order_acquire); left != others;
       left = left_.load(std::memory_order_acquire)) {
    wait_for_change(left_, left, kSpinsInPass);
  }
  return step_.load(std::memory_order_relaxed) != kStopped;
}

void Team::work(uint32_t index, const std::stop_token& stop) {
  uint32_t seen = 0;
  while (true) {
    wait_for_change(run_, seen, kSpinsBetween);
    if (stop.stop_requested()) return;
    const uint32_t now = run_.load(std::memory_order_acquire);
    if (now == seen) continue;  // woken for nothing
    seen = now;
    go_through(index);
    left_.fetch_add(1, std::memory_order_release);
    wake_one(left_);
  }
}

void Team::go_through(uint32_t index) {
  Worker worker;
  worker.index_ = index;
  worker.threads_ = threads();
  worker.memory_ = memory_;
  worker.scratch_ = scratch_[index].data();
  worker.common_ = common_.data();
  const auto count = static_cast<uint32_t>(steps_.size());
  for (uint32_t s = 0; s < count;) {
    worker.taken_ = &taken_[s];
    steps_[s].work(worker);
    if (s + 1 == count && index != 0) {  // the caller waits for them all to leave
      return;
    }
    const uint32_t following = s + 1;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads()) {
      const bool stopped = following < count && steps_[following].starts_op && stop_->stop_requested();
      arrived_.store(0, std::memory_order_relaxed);
      step_.store(stopped ? kStopped : following, std::memory_order_release);
      wake_all(step_);
      if (stopped) return;
    } else if (following < count) {
      uint32_t now = step_.load(std::memory_order_acquire);
      while (now == s) {
        wait_for_change(step_, s, kSpinsInPass);
        now = step_.load(std::memory_order_acquire);
      }
      if (now == kStopped) return;
    }
    s = following;
  }
}

}  // namespace canopy::cpu
