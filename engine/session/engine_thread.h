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

/// What serves a loaded model to clients (engine/serve), on the engine's thread. Its events are told by a function.
class ModelService {
 public:
  /// Ends all connections and replies.
  virtual ~ModelService() = default;
  /// Does the work of one turn, at most a pass. Whether there is more to do at once. Throws device_lost.
  virtual bool step() = 0;
  virtual void stop(uint64_t reply_id) = 0;
  virtual void pause(uint64_t reply_id, bool paused) = 0;
  virtual void record(const RecordServed& wish) = 0;
};

struct ServiceCallbacks {
  std::function<void(Event event, bool wake)> publish;  // on the engine's thread; wake: as of ReplyPublisher
  std::function<void()> wake;                           // from any thread: there is something new to do for step()
};

/// Serves the engine, which outlives the service. Throws the reason why it cannot be.
using MakeService =
    std::function<std::unique_ptr<ModelService>(Engine& engine, const Serve& wish, ServiceCallbacks callbacks)>;

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
  /// Serves models; empty: they cannot be served.
  MakeService serve = {};
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
/// `commit` is the program's, for reports; `settings` are those of every device that is opened; `serve` is that of
/// EngineBackend.
std::unique_ptr<EngineClient> make_engine(const std::string& commit = "unknown", const DeviceSettings& settings = {},
                                          MakeService serve = {});

}  // namespace canopy
