#pragma once
// A device that compiles and runs ops one at a time, on any other device: a test can end a pass at each of them.

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "tests/compute/forwarding_device.h"

namespace canopy::test {

class SteppingDevice : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  /// Called before each op that is compiled or run, for instance to request a stop.
  std::function<void()> before_op = [] {};

  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override {
    auto all = std::make_unique<Steps>();
    for (const Op& op : ops) {
      before_op();
      auto one = ForwardingDevice::compile({&op, 1}, stop);
      if (one == nullptr) return nullptr;
      all->ops.push_back(std::move(one));
    }
    return all;
  }

  bool run(Commands& commands, const std::stop_token& stop) override {
    for (const auto& op : dynamic_cast<Steps&>(commands).ops) {
      before_op();
      if (stop.stop_requested() || !ForwardingDevice::run(*op, stop)) return false;
    }
    return true;
  }
  void start(Commands& commands) override {
    for (const auto& op : dynamic_cast<Steps&>(commands).ops) ForwardingDevice::run(*op, {});
  }

 private:
  struct Steps final : Commands {
    std::vector<std::unique_ptr<Commands>> ops;
  };
};

/// Requests a stop when the n-th op comes up; the 0th never does.
class StopAtOp {
 public:
  explicit StopAtOp(SteppingDevice& device) : device_(device) {
    device.before_op = [this] {
      if (++ops_ == at_) source_.request_stop();
    };
  }
  ~StopAtOp() {
    device_.before_op = [] {};
  }
  StopAtOp(const StopAtOp&) = delete;
  StopAtOp& operator=(const StopAtOp&) = delete;

  /// Starts counting anew; the token is a new one.
  std::stop_token arm(uint64_t at) {
    at_ = at;
    ops_ = 0;
    source_ = {};
    return source_.get_token();
  }
  /// Stops in so many ops more.
  void in(uint64_t ops) { at_ = ops_ + ops; }
  /// Ops that came up since arm().
  uint64_t ops() const { return ops_; }

 private:
  SteppingDevice& device_;
  std::stop_source source_;
  uint64_t at_ = 0;
  uint64_t ops_ = 0;
};

}  // namespace canopy::test
