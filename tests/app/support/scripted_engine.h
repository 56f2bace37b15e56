#pragma once
// An engine without a model: a script of the test answers commands with events. It runs on the caller's thread, so that
// tests are exact; an engine that hangs is one that publishes nothing.

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/session/engine_client.h"

namespace canopy::test {

class ScriptedEngine final : public EngineClient {
 public:
  /// Called for each posted command; may publish events. Replace it to change the script.
  std::function<void(ScriptedEngine&, const Command&)> script;

  void post(Command command) override {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(command);
    }
    if (script) script(*this, command);
  }

  std::vector<Event> poll() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

  void set_wake(std::function<void()> wake) override {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }

  std::vector<DeviceChoice> devices() const override { return devices_; }

  /// Publishes an event; may be called from any thread.
  void publish(Event event) {
    std::function<void()> wake;
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
      wake = wake_;
    }
    if (wake) wake();
  }

  std::vector<Command> posted() const {
    const std::lock_guard lock(mutex_);
    return posted_;
  }

  template <class T>
  size_t count() const {
    size_t n = 0;
    for (const Command& c : posted()) n += std::holds_alternative<T>(c);
    return n;
  }

  template <class T>
  T last() const {
    T found{};
    for (const Command& c : posted())
      if (const T* each = std::get_if<T>(&c)) found = *each;
    return found;
  }

  std::vector<DeviceChoice> devices_;

 private:
  mutable std::mutex mutex_;
  std::vector<Command> posted_;
  std::vector<Event> events_;
  std::function<void()> wake_;
};

/// A model as the engine would describe it.
ModelReady small_model();
/// Two devices that can be used and one that cannot.
std::vector<DeviceChoice> some_devices();
/// A script that opens any model at once and answers with the pieces, one TextDelta each.
std::function<void(ScriptedEngine&, const Command&)> answers_with(std::vector<std::string> pieces);

}  // namespace canopy::test
