#pragma once
// A device that runs what was started as late as allowed: before anything else runs or is read, or when finish() is
// called. Code that relies on an earlier run, or overwrites inputs too early, gets other results than on a device that
// waits.

#include <algorithm>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "tests/compute/forwarding_device.h"

namespace canopy::test {

class DeferringDevice : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  /// Throws bad_input for commands that are started already and not finished.
  void start(Commands& commands) override {
    if (std::ranges::find(waiting_, &commands) != waiting_.end()) {
      throw bad_input("Commands were started again before they were finished.");
    }
    waiting_.push_back(&commands);
    ++started_;
  }
  void finish() override {
    for (Commands* commands : std::exchange(waiting_, {})) ForwardingDevice::run(*commands, {});
  }

  bool run(Commands& commands, const std::stop_token& stop) override {
    finish();
    return ForwardingDevice::run(commands, stop);
  }
  void read_all(std::span<const BufferRead> reads) override {
    finish();
    ForwardingDevice::read_all(reads);
  }
  std::vector<float> read_activations(const Activations& activations, uint32_t width) override {
    finish();
    return ForwardingDevice::read_activations(activations, width);
  }
  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override {
    finish();
    return ForwardingDevice::read_kv(layer, values, first, count);
  }

  size_t waiting() const { return waiting_.size(); }
  size_t started() const { return started_; }

 private:
  std::vector<Commands*> waiting_;
  size_t started_ = 0;
};

}  // namespace canopy::test
