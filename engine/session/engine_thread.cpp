#include "engine/session/engine_thread.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/devices/devices.h"
#include "engine/session/engine_worker.h"

namespace canopy {

EngineThread::EngineThread(EngineBackend backend) : worker_(std::make_unique<Worker>(std::move(backend))) {}

EngineThread::~EngineThread() = default;

void EngineThread::post(Command command) {
  worker_->post(std::move(command));
}

std::vector<Event> EngineThread::poll() {
  return worker_->poll();
}

void EngineThread::set_wake(std::function<void()> wake) {
  worker_->set_wake(std::move(wake));
}

std::vector<DeviceChoice> EngineThread::devices() const {
  return worker_->devices();
}

std::unique_ptr<EngineClient> make_engine(const std::string& commit, const DeviceSettings& settings) {
  const auto list = []() -> std::vector<DeviceChoice> {
    try {
      return canopy::list_devices();
    } catch (const Error& e) {
      return {{"", "No device", "none", false, e.what()}};
    }
  };
  const auto open = [settings](const std::string& selector, uint32_t threads) {
    DeviceSettings own = settings;
    if (threads > 0) own.threads = std::min(threads, most_threads());
    return open_device(selector, own);
  };
  EngineBackend backend{open, list, kFirstCalibration, device_uuid};
  backend.commit = commit;
  return std::make_unique<EngineThread>(std::move(backend));
}

}  // namespace canopy
