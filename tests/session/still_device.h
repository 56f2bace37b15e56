#pragma once
// A device that can stop computing: its passes then cost nothing, and what is read of them is what the last real ones
// left. So what is left of a round's time is the host's. Counts what is made on the device.

#include <algorithm>
#include <map>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "tests/compute/forwarding_device.h"

namespace canopy::test {

class StillDevice : public ForwardingDevice {
 public:
  /// Passes are padded to `width_buckets`, as on a GPU.
  StillDevice(std::unique_ptr<Device> inner, std::vector<uint32_t> width_buckets)
      : ForwardingDevice(std::move(inner)), info_(ForwardingDevice::info()) {
    info_.width_buckets = std::move(width_buckets);
  }
  const DeviceInfo& info() const override { return info_; }

  /// From now on nothing is computed, and reads give what they gave before.
  void stop_computing() { still_ = true; }

  uint64_t allocations() const { return allocations_; }
  uint64_t recordings() const { return recordings_; }

  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override {
    ++allocations_;
    return ForwardingDevice::allocate(bytes, name);
  }
  std::unique_ptr<Buffer> allocate_exchanged(uint64_t bytes, HostUse use, std::string_view name) override {
    ++allocations_;
    return ForwardingDevice::allocate_exchanged(bytes, use, name);
  }
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override {
    ++allocations_;
    return ForwardingDevice::part(whole, offset, bytes, name);
  }
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override {
    ++allocations_;
    return ForwardingDevice::allocate_activations(max_width, cols, name);
  }
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override {
    ++allocations_;
    return ForwardingDevice::allocate_kv(shape, layers, name);
  }
  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override {
    ++recordings_;
    return ForwardingDevice::compile(ops, stop);
  }
  bool run(Commands& commands, const std::stop_token& stop) override {
    return still_ || ForwardingDevice::run(commands, stop);
  }
  void start(Commands& commands) override {
    if (!still_) ForwardingDevice::start(commands);
  }
  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    if (!still_) ForwardingDevice::write(to, offset, from);
  }
  void read_all(std::span<const BufferRead> reads) override {
    for (const BufferRead& read : reads) {
      std::vector<std::byte>& known = read_[{read.from, read.offset}];
      if (!still_ || known.size() < read.to.size()) {
        ForwardingDevice::read_all({&read, 1});
        known.assign(read.to.begin(), read.to.end());
      }
      std::copy_n(known.begin(), read.to.size(), read.to.begin());
    }
  }

 private:
  DeviceInfo info_;
  bool still_ = false;
  std::map<std::pair<const Buffer*, uint64_t>, std::vector<std::byte>> read_;  // by buffer and offset: the last
  uint64_t allocations_ = 0;
  uint64_t recordings_ = 0;
};

}  // namespace canopy::test
