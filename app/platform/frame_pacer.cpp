#include "app/platform/frame_pacer.h"

#include <algorithm>

namespace canopy::app {
namespace {

constexpr int kSettle = 3;
constexpr double kMaxRate = 30;         // frames a second while the engine works
constexpr double kSoftwareShare = 0.1;  // share of the processor for drawing while the engine works
constexpr double kInputInterval = 1.0 / 60;
constexpr double kInputShare = 0.5;  // more after input, as that is short
constexpr double kPointerShare = 0.25;
constexpr int kPointerFrames = 2;  // what is pointed at is known after the first
constexpr double kMemory = 0.3;

}  // namespace

void FramePacer::on_input() {
  owed_ = kSettle;
  input_ = true;
}

void FramePacer::on_pointer() {
  owed_ = std::max(owed_, kPointerFrames);
  pointer_ = true;
}

void FramePacer::on_engine_event(bool generating) {
  generating_ = generating;
  // While more events follow, each brings a frame anyway. The last event gets all the frames the layout needs.
  owed_ = std::max(owed_, generating ? 1 : kSettle);
}

void FramePacer::on_frame(double start, double cost) {
  cost_ = cost_ == 0 ? cost : cost_ + kMemory * (cost - cost_);
  last_ = start;
  owed_ = std::max(0, owed_ - 1);
  if (input_ || pointer_) {
    rested_ = start + kRest;
  } else if (start >= rested_) {
    rested_ = kNever;
    owed_ = kSettle - 1;
  }
  input_ = pointer_ = false;
}

double FramePacer::engine_interval() const {
  const double by_rate = 1.0 / kMaxRate;
  return software_ ? std::max(by_rate, cost_ / kSoftwareShare) : by_rate;
}

double FramePacer::wait(double now) const {
  if (owed_ == 0 && !moving_) return rested_ == kNever ? kNever : std::max(0.0, rested_ - now);
  double interval = kInputInterval;
  if (software_ && (moving_ || (input_ && generating_))) interval = std::max(interval, cost_ / kInputShare);
  if (!input_ && generating_) interval = engine_interval();
  if (pointer_ && !input_) interval = software_ ? std::max(kInputInterval, cost_ / kPointerShare) : kInputInterval;
  return std::max(0.0, last_ + interval - now);
}

}  // namespace canopy::app
