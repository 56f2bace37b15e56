#pragma once
// A device that records the calls it receives, for tests that compare two ways of using it.

#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include "tests/compute/forwarding_device.h"

namespace canopy::test {

/// A call that waits for the device or gives it data.
struct DeviceCall {
  enum class Kind { run, read, write };
  Kind kind = Kind::run;
  uint64_t bytes = 0;  // of a read or a write
  bool operator==(const DeviceCall&) const = default;
};

/// Filled by the engine's thread, read by the test's.
class CallList {
 public:
  void add(DeviceCall call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
  }
  std::vector<DeviceCall> all() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<DeviceCall> calls_;
};

class RecordedCalls final : public ForwardingDevice {
 public:
  RecordedCalls(std::unique_ptr<Device> inner, std::shared_ptr<CallList> calls)
      : ForwardingDevice(std::move(inner)), calls_(std::move(calls)) {}

  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    calls_->add({DeviceCall::Kind::write, from.size()});
    ForwardingDevice::write(to, offset, from);
  }
  void read_all(std::span<const BufferRead> reads) override {
    uint64_t bytes = 0;
    for (const BufferRead& r : reads) bytes += r.to.size();
    calls_->add({DeviceCall::Kind::read, bytes});
    ForwardingDevice::read_all(reads);
  }
  std::vector<float> read_activations(const Activations& activations, uint32_t width) override {
    calls_->add({DeviceCall::Kind::read, width});
    return ForwardingDevice::read_activations(activations, width);
  }
  std::vector<float> read_kv(const KvLayer& layer, bool values, uint32_t first, uint32_t count) override {
    calls_->add({DeviceCall::Kind::read, count});
    return ForwardingDevice::read_kv(layer, values, first, count);
  }
  bool run(Commands& commands, const std::stop_token& stop) override {
    calls_->add({DeviceCall::Kind::run, 0});
    return ForwardingDevice::run(commands, stop);
  }

 private:
  std::shared_ptr<CallList> calls_;
};

}  // namespace canopy::test
