#include <utility>

#include "engine/base/error.h"
#include "engine/session/dense_drafts.h"
#include "engine/session/engine_worker.h"

namespace canopy {

DenseCallbacks EngineThread::Worker::dense_callbacks(const std::stop_token& stop) {
  DenseCallbacks callbacks;
  callbacks.stop = stop;
  callbacks.progress = [this](uint64_t done, uint64_t total) { publish(DensifyProgress{done, total}); };
  return callbacks;
}

void EngineThread::Worker::make_dense(const std::stop_token& stop) {
  if (!current_ || current_->trace == nullptr) return;
  const std::filesystem::path path = std::exchange(current_->dense_trace, {});
  const bool whole = current_->trace->problem().empty() && current_->trace->rounds() > 0;
  if (path.empty() || !whole || current_->model->drafter == nullptr) return end_recording();
  current_->trace->finish();
  try {
    canopy::densify(model(), path, dense_callbacks(stop));
  } catch (...) {
    // One that was cancelled says so with its title; the window shows no card of it.
    failed(
        std::current_exception(), [](ErrorKind) { return "The recording got no drafts behind every token"; }, 0);
  }
  if (!current_ || current_->trace == nullptr) return;  // the device was lost meanwhile
  tell_of_recording(false);
  current_->trace.reset();
}

void EngineThread::Worker::densify(const DensifyTrace& command, const std::stop_token& stop) {
  TraceDensified done{command.path, 0, ""};
  try {
    if (stop.stop_requested()) throw cancelled("The drafts behind every token were cancelled.");
    done.added = canopy::densify(model(), command.path, dense_callbacks(stop)).added;
  } catch (const Error& e) {
    done.cancelled = e.kind() == ErrorKind::cancelled;
    if (!done.cancelled) done.problem = e.what();
    if (e.kind() == ErrorKind::device_lost) {
      failed(
          std::current_exception(), [](ErrorKind) { return "The recording got no drafts behind every token"; }, 0);
    }
  } catch (...) {
    done.problem = as_error(std::current_exception()).what();
  }
  publish(std::move(done));
}

}  // namespace canopy
