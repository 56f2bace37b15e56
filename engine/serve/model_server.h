#pragma once
// A loaded model as a server that OpenAI's and Anthropic's clients speak to: who may ask, what there is, and one
// handler for all replies.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "engine/serve/scheduler.h"
#include "engine/serve/serve_options.h"
#include "engine/session/engine.h"

namespace canopy {

class ModelServer {
 public:
  /// Listens at once; replies are written by run() or step(). `engine` and the observer, which may be null, must
  /// outlive this. wake: called from any thread where there is something new to do for step(); may be empty. Throws the
  /// errors of validate() and of HttpServer.
  ModelServer(const Engine& engine, ServeOptions options, ServedObserver* observer = nullptr,
              std::function<void()> wake = {});
  /// Ends all connections and replies.
  ~ModelServer();

  /// "http://127.0.0.1:8737/v1"
  std::string url() const;
  const std::string& model() const;

  /// Writes replies on this thread, to which `engine` belongs, until `stop`; all connections end then. Throws
  /// device_lost.
  void run(const std::stop_token& stop);
  /// The same a turn at a time, for a thread that has other work, too: Scheduler::step().
  bool step();

  /// Stops and pauses replies, and tells how many there are; from any thread.
  Scheduler& scheduler();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace canopy
