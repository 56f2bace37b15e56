#pragma once
// A made-up device that leaves the processor free while it works, as a GPU does: its passes take a fixed time, for most
// of which the calling thread sleeps. What they compute is right, computed by the device behind it within that time.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

#include "tests/base/processor_time.h"
#include "tests/compute/forwarding_device.h"

namespace canopy::test {

/// What the passes of such a device were.
struct SleepingPasses {
  std::atomic<uint64_t> count{0}, late{0};  // late: computing took longer than the pass was to take
  std::atomic<uint64_t> computed_us{0};     // processor time of them all
  std::atomic<bool> sleeping{false};        // else passes take what computing takes, as for a load
};

class SleepingDevice final : public ForwardingDevice {
 public:
  /// `passes` must outlive it.
  SleepingDevice(std::unique_ptr<Device> inner, std::chrono::microseconds pass, SleepingPasses& passes)
      : ForwardingDevice(std::move(inner)), info_(ForwardingDevice::info()), pass_(pass), passes_(passes) {
    info_.name = "Made-up device that sleeps";
  }
  const DeviceInfo& info() const override { return info_; }

  bool run(Commands& commands, const std::stop_token& stop) override {
    const auto end = std::chrono::steady_clock::now() + pass_;
    const ProcessorClock computing;
    const bool whole = ForwardingDevice::run(commands, stop);
    if (!passes_.sleeping) return whole;
    passes_.computed_us += static_cast<uint64_t>(computing.seconds() * 1e6);
    ++passes_.count;
    if (std::chrono::steady_clock::now() > end) ++passes_.late;
    std::this_thread::sleep_until(end);
    return whole;
  }

 private:
  DeviceInfo info_;
  std::chrono::microseconds pass_;
  SleepingPasses& passes_;
};

}  // namespace canopy::test
