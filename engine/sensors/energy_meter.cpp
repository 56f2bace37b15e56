#include "engine/sensors/energy_meter.h"

namespace canopy {
namespace {

constexpr std::chrono::milliseconds kBetweenReadings{50};

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void PowerSum::add(double seconds, double watts) {
  if (readings_ > 0) joules_ += (seconds - last_seconds_) * (watts + last_watts_) / 2;
  ++readings_;
  last_seconds_ = seconds;
  last_watts_ = watts;
}

std::optional<double> PowerSum::joules() const {
  return readings_ < 2 ? std::nullopt : std::optional(joules_);
}

void EnergyMeter::begin() {
  stop_thread();
  counter_.reset();
  sum_ = {};
  if (sensors_ == nullptr) return;
  const SensorReading now = sensors_->read();
  counter_ = now.energy_j;
  if (counter_ || !now.power_w) return;
  sum_.add(monotonic_seconds(), *now.power_w);
  stopping_ = false;
  thread_ = std::thread([this] { sample(); });
}

void EnergyMeter::sample() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kBetweenReadings, [this] { return stopping_; })) {
    const SensorReading now = sensors_->read();
    if (now.power_w) sum_.add(monotonic_seconds(), *now.power_w);
  }
}

void EnergyMeter::stop_thread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

SensorReading EnergyMeter::end() {
  const bool sampled = thread_.joinable();
  stop_thread();
  if (sensors_ == nullptr) return {};
  SensorReading now = sensors_->read();
  std::optional<double> joules;
  if (counter_ && now.energy_j && *now.energy_j >= *counter_) joules = *now.energy_j - *counter_;
  if (sampled && now.power_w) {
    sum_.add(monotonic_seconds(), *now.power_w);
    joules = sum_.joules();
  }
  now.energy_j = joules;
  counter_.reset();
  return now;
}

}  // namespace canopy
