#pragma once
// No engine: what shows a trace needs none, and on a machine without a Vulkan device there is none to make.

#include "engine/client/engine_client.h"

namespace canopy::app {

class IdleEngine final : public EngineClient {
 public:
  void post(Command) override {}
  std::vector<Event> poll() override { return {}; }
  void set_wake(std::function<void()>) override {}
  std::vector<DeviceChoice> devices() const override { return {}; }
};

}  // namespace canopy::app
