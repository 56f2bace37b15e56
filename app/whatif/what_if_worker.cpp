#include "app/whatif/what_if_worker.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "engine/base/error.h"

namespace canopy::app {

struct WhatIfWorker::Shared {
  WhatIfMaker maker;
  std::mutex mutex;
  std::condition_variable_any asked;
  std::function<void()> wake;
  std::optional<WhatIfQuestion> question;
  std::stop_source current;  // of the question being answered
  std::optional<WhatIfAnswer> answer;
  uint64_t newest = 0;
};

WhatIfWorker::WhatIfWorker(WhatIfMaker maker) : shared_(std::make_shared<Shared>()) {
  shared_->maker = std::move(maker);
}

WhatIfWorker::~WhatIfWorker() {
  if (!thread_.joinable()) return;
  thread_.request_stop();  // first: no other question may be begun between the two
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = {};
  shared_->current.request_stop();
}

void WhatIfWorker::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = std::move(wake);
}

void WhatIfWorker::ask(WhatIfQuestion question) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->newest = question.number;
    shared_->question = std::move(question);
    shared_->answer.reset();
    shared_->current.request_stop();
    if (!thread_.joinable())
      thread_ = std::jthread([shared = shared_](const std::stop_token& stop) { work(*shared, stop); });
  }
  shared_->asked.notify_one();
}

std::optional<WhatIfAnswer> WhatIfWorker::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->answer, std::nullopt);
}

void WhatIfWorker::work(Shared& shared, const std::stop_token& stop) {
  std::unique_lock lock(shared.mutex);
  while (shared.asked.wait(lock, stop, [&] { return shared.question.has_value(); })) {
    const WhatIfQuestion question = *std::exchange(shared.question, std::nullopt);
    shared.current = std::stop_source();
    if (stop.stop_requested()) return;
    const std::stop_token current = shared.current.get_token();
    const auto tell = [&](const WhatIfAnswer& answer) {
      const std::lock_guard told(shared.mutex);
      if (shared.newest != question.number) return;
      shared.answer = answer;
      if (shared.wake) shared.wake();
    };
    lock.unlock();
    try {
      tell(shared.maker(question, tell, current));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::cancelled) tell({question.number, {}, true, e.what()});
    } catch (...) {
      tell({question.number, {}, true, as_error(std::current_exception()).what()});
    }
    lock.lock();
  }
}

}  // namespace canopy::app
