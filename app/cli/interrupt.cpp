#include "app/cli/interrupt.h"

#include <semaphore.h>

#include <csignal>
#include <mutex>
#include <thread>

namespace canopy::cli {
namespace {

volatile std::sig_atomic_t pressed = 0;
volatile std::sig_atomic_t continued = 0;
sem_t presses;  // one for each that the watcher has not seen yet

extern "C" void on_continue(int) {
  continued = 1;
}

extern "C" void on_interrupt(int) {
  pressed = 1;
  sem_post(&presses);
}

/// Turns the signal into a request to stop: std::stop_source may not be used in a signal handler, sem_post may.
class Watcher {
 public:
  Watcher() {
    sem_init(&presses, 0, 0);
    // The thread leaves the signal to the others, so that it interrupts the read that waits for input.
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    thread_ = std::jthread([this](const std::stop_token& end) { watch(end); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Watcher() {
    thread_.request_stop();
    sem_post(&presses);
  }

  std::stop_token token() {
    const std::lock_guard lock(mutex_);
    return source_.get_token();
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    pressed = 0;
    if (source_.stop_requested()) source_ = {};
  }

 private:
  void watch(const std::stop_token& end) {
    while (!end.stop_requested()) {
      if (sem_wait(&presses) != 0) continue;
      const std::lock_guard lock(mutex_);
      if (pressed != 0) source_.request_stop();  // else it was forgotten meanwhile
    }
  }

  std::mutex mutex_;
  std::stop_source source_;
  std::jthread thread_;
};

Watcher& watcher() {
  static Watcher watcher;
  return watcher;
}

}  // namespace

void catch_interrupts() {
  watcher().forget();
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // SA_RESETHAND: only the first Ctrl-C is caught, the second ends the program. No SA_RESTART: a waiting read returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() {
  return pressed != 0;
}

std::stop_token interruption() {
  return watcher().token();
}

void forget_interrupt() {
  catch_interrupts();
}

void catch_pauses() {
  struct sigaction action = {};
  action.sa_handler = on_continue;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCONT, &action, nullptr);
}

bool take_pause() {
  const bool was = continued != 0;
  continued = 0;
  return was;
}

}  // namespace canopy::cli
