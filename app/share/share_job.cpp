#include "app/share/share_job.h"

#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy::app {

struct ShareJob::Shared {
  std::mutex mutex;
  std::function<void()> wake;
  std::optional<ShareNews> news;

  void tell(ShareNews latest) {
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex);
      news = std::move(latest);
      call = wake;
    }
    if (call) call();
  }
};

ShareJob::ShareJob() : shared_(std::make_shared<Shared>()) {}

ShareJob::~ShareJob() {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = {};
}

void ShareJob::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = std::move(wake);
}

void ShareJob::start(std::filesystem::path path, Make make) {
  thread_ = {};
  take();
  thread_ =
      std::jthread([shared = shared_, path = std::move(path), make = std::move(make)](const std::stop_token& stop) {
        ShareNews end;
        end.ended = true;
        try {
          const ShareCallbacks callbacks{[&](size_t done, size_t total) {
                                           shared->tell({done, total, false, {}, {}});
                                         },
                                         stop};
          const std::string content = make(callbacks);
          callbacks.step(1, 1);
          std::error_code ignored;  // writing says why it is not possible
          if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
          write_file_atomically(path, content, PipeWithoutReader::refuse);
          end.path = path.string();
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::cancelled) end.problem = printable(e.what(), 4096, LineBreaks::keep);
        } catch (...) {
          end.problem = printable(as_error(std::current_exception()).what(), 4096);
        }
        shared->tell(std::move(end));
      });
}

void ShareJob::stop() {
  thread_.request_stop();
}

std::optional<ShareNews> ShareJob::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->news, std::nullopt);
}

}  // namespace canopy::app
