// What the engine's thread does to report a device.

#include <utility>

#include "engine/base/error.h"
#include "engine/session/engine_worker.h"

namespace canopy {
namespace {

const char* report_title(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::device_lost: return "The device stopped working";
    case ErrorKind::cancelled: return "The report was cancelled";
    case ErrorKind::unavailable: return "The device is not available";
    default: return "The device could not be measured";
  }
}

DeviceReported summary_of(const MeasuredReport& report) {
  const MeasuredModel& model = report.models.at(0);
  DeviceReported told;
  told.json = std::make_shared<const std::string>(report_text(report));
  told.device = report.info.name;
  told.backend = report.info.backend;
  told.shape = model.shape;
  told.kernels = kernel_family_of(report.info.kernels);
  if (model.self_test) told.self_test = model.self_test->sentence;
  told.problem = model.skipped;
  if (!model.measurement || model.measurement->contexts.empty()) return told;
  const MeasuredContext& shortest = model.measurement->contexts.front();
  for (const MeasuredWidth& pass : shortest.passes) told.passes.emplace_back(pass.width, pass.time.ms());
  told.weights_gb_s = model.measurement->weights_gb_s(shortest);
  told.peak_gb_s = model.measurement->peak.read_gb_s;
  return told;
}

}  // namespace

void EngineThread::Worker::report(const ReportDevice& command, const std::stop_token& stop) {
  try {
    if (stop.stop_requested()) throw cancelled("The report was cancelled.");
    const MeasuringCallbacks callbacks{[this](const LoadProgress& step) { publish(ReportProgress{step}); }, stop};
    if (!current_ || current_->model == nullptr) {
      publish(summary_of(report_shape(command, callbacks)));
      return;
    }
    MeasurementPlan plan;
    plan.seconds = command.seconds;
    MeasuredReport report = describe_device(*current_->device, backend_.commit);
    report.models.push_back(measure_engine(*current_->model, plan, callbacks));
    publish(summary_of(report));
  } catch (...) {
    failed(std::current_exception(), report_title, 0);
  }
}

MeasuredReport EngineThread::Worker::report_shape(const ReportDevice& command, const MeasuringCallbacks& callbacks) {
  callbacks.progress({"Opening the device", 0, 0});
  const std::unique_ptr<Device> device = backend_.open_device(command.device, current_ ? current_->request.threads : 0);
  MeasurementPlan plan;
  plan.seconds = command.seconds;
  MeasuredReport report = describe_device(*device, backend_.commit);
  report.models.push_back(measure_shape(*device, backend_.reported_shape, CacheType::f16, plan, callbacks));
  report.info = device->info();  // a self-test may have made it fall back to other kernels
  return report;
}

}  // namespace canopy
