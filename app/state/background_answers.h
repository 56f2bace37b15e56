#pragma once
// A thread that answers questions which may take long, such as those about files, so that the window never waits.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace canopy::app {

/// What becomes of questions that wait when another one is asked.
enum class Waiting { is_dropped, is_answered };

/// Begins its thread with the first question. `Answer` says by itself what went wrong: the work must not throw.
template <class Question, class Answer>
class BackgroundAnswers {
 public:
  using Work = std::function<Answer(const Question&, const std::stop_token&)>;

  BackgroundAnswers(Work work, Waiting waiting) : shared_(std::make_shared<Shared>()) {
    shared_->work = std::move(work);
    shared_->waiting = waiting;
  }
  /// Asks the work to stop and waits at most one second for it, so that a folder that does not answer cannot keep the
  /// window open. Work that takes longer ends with the process.
  ~BackgroundAnswers() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    std::unique_lock lock(shared_->mutex);
    shared_->wake = {};
    const bool ended = shared_->ended.wait_for(lock, std::chrono::seconds(1), [&] { return !shared_->running; });
    lock.unlock();
    if (ended) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }
  BackgroundAnswers(const BackgroundAnswers&) = delete;
  BackgroundAnswers& operator=(const BackgroundAnswers&) = delete;

  /// `wake` is called on the thread when take() has something. Call before ask().
  void set_wake(std::function<void()> wake) {
    const std::lock_guard lock(shared_->mutex);
    shared_->wake = std::move(wake);
  }

  /// Returns at once.
  void ask(Question question) {
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->waiting == Waiting::is_dropped) {
        shared_->questions.clear();
        shared_->answers.clear();
      }
      shared_->questions.push_back(std::move(question));
      if (!std::exchange(shared_->running, true))
        thread_ = std::jthread([shared = shared_](const std::stop_token& stop) { run(*shared, stop); });
    }
    shared_->asked.notify_one();
  }

  /// The answers so far, in the order of the questions; each is returned once.
  std::vector<Answer> take() {
    const std::lock_guard lock(shared_->mutex);
    return std::exchange(shared_->answers, {});
  }

 private:
  /// Shared by both threads, as the work may outlive this object.
  struct Shared {
    Work work;
    Waiting waiting = Waiting::is_answered;
    std::mutex mutex;
    std::condition_variable_any asked, ended;
    std::function<void()> wake;
    std::deque<Question> questions;
    std::vector<Answer> answers;
    bool running = false;  // the thread is
  };

  static void run(Shared& shared, const std::stop_token& stop) {
    std::unique_lock lock(shared.mutex);
    while (shared.asked.wait(lock, stop, [&] { return !shared.questions.empty(); })) {
      const Question question = std::move(shared.questions.front());
      shared.questions.pop_front();
      lock.unlock();
      Answer answer = shared.work(question, stop);
      lock.lock();
      if (stop.stop_requested()) break;
      // A newer question is waiting: this answer is not needed any more.
      if (shared.waiting == Waiting::is_dropped && !shared.questions.empty()) continue;
      shared.answers.push_back(std::move(answer));
      if (shared.wake) shared.wake();
    }
    shared.running = false;
    shared.ended.notify_all();
  }

  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace canopy::app
