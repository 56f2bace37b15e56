#pragma once
// The real engine behind engine_client.h: one thread that owns device, model and session, the queues on both sides of
// it, and what it does with each command.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/compute/backend.h"
#include "engine/session/engine_client.h"
#include "engine/session/measured_report.h"

namespace canopy {

/// The source of devices for the engine: this machine in the programs, the reference device in tests.
struct EngineBackend {
  /// Opens the device a selector names (empty: the best). threads: LoadModel::threads. Called on the engine's thread.
  std::function<std::unique_ptr<Device>(const std::string& selector, uint32_t threads)> open_device;
  /// What EngineClient::devices() answers. Called once, by the constructor; must not throw.
  std::function<std::vector<DeviceChoice>()> list_devices;
  /// OpenRequest::calibration_s of every load; 0 in tests, which leave no files.
  double calibration_s = 0;
  /// DeviceInfo::uuid of the device a selector names, without opening it: several selectors may name one device.
  /// Without it each selector stands for a device of its own.
  std::function<std::string(const std::string& selector)> device_uuid = {};
  /// OpenRequest::replies of every load; empty: none are kept.
  std::filesystem::path replies = {};
  /// Of the program, for reports.
  std::string commit = "unknown";
  /// What a report measures where no model is loaded (model_shapes.h).
  std::string reported_shape = kReportedShape;
};

class EngineThread final : public EngineClient {
 public:
  explicit EngineThread(EngineBackend backend);
  /// Abandons what is under way and waits for the thread: at most one part of a pass.
  ~EngineThread() override;

  void post(Command command) override;
  std::vector<Event> poll() override;
  void set_wake(std::function<void()> wake) override;
  std::vector<DeviceChoice> devices() const override;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

/// The engine on this machine's devices. Never throws for want of a driver: then devices() is empty or says why,
/// and loading a model ends in a Failure.
/// `commit` is the program's, for reports; `settings` are those of every device that is opened.
std::unique_ptr<EngineClient> make_engine(const std::string& commit = "unknown", const DeviceSettings& settings = {});

}  // namespace canopy
