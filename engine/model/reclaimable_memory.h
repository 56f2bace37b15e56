#pragma once
// Memory of a device that a load may count on: what is free, and what the model that it replaces would give back.

#include <cstdint>
#include <functional>
#include <utility>

#include "engine/compute/device.h"

namespace canopy {

/// A load plans with the memory of the model it replaces as if that were free, so that a file gets the same context and
/// the same weights as in an empty device. The old model is released only once the plan stands, and only where the new
/// one does not fit beside it. Belongs to the thread of the load.
class ReclaimableMemory {
 public:
  /// Nothing is replaced.
  ReclaimableMemory() = default;
  /// `bytes` on the device come back when `release` is called, which happens at most once.
  ReclaimableMemory(uint64_t bytes, std::function<void()> release) : bytes_(bytes), release_(std::move(release)) {}

  /// Bytes that a load may plan with.
  uint64_t available(const Device& device) const { return device.memory().available + bytes_; }

  /// Called when so many bytes are about to be allocated by a plan that stands. True when the old model was released
  /// for it: available() is then what the device says, and a plan may be made anew.
  bool make_room(const Device& device, uint64_t bytes) {
    planned_ = true;
    if (!release_ || bytes <= device.memory().available) return false;
    release_now();
    return true;
  }

  /// Whether a plan stood: what ran out of memory before that does not fit without the old model either.
  bool is_planned() const { return planned_; }

 private:
  void release_now() {
    bytes_ = 0;
    std::exchange(release_, nullptr)();
  }

  uint64_t bytes_ = 0;
  std::function<void()> release_;
  bool planned_ = false;
};

}  // namespace canopy
