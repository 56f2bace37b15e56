#pragma once
// Makes one file on a thread of its own, so that the window goes on drawing: an animation takes seconds.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "app/share/shared_run.h"

namespace canopy::app {

struct ShareNews {
  size_t done = 0, total = 0;
  bool ended = false;
  std::string path;     // that was written; empty where it was not
  std::string problem;  // why not, as a sentence; empty where it was cancelled
};

class ShareJob {
 public:
  /// Gives the file's content.
  using Make = std::function<std::string(const ShareCallbacks& callbacks)>;

  ShareJob();
  /// Cancels what is under way and waits for it: its steps are short.
  ~ShareJob();
  ShareJob(const ShareJob&) = delete;
  ShareJob& operator=(const ShareJob&) = delete;

  /// `wake` is called on the job's thread when take() has something. Call before start().
  void set_wake(std::function<void()> wake);

  /// Begins a file, in a folder that is made where there is none. What was under way is cancelled first.
  void start(std::filesystem::path path, Make make);
  void stop();

  /// What has become known since the last call.
  std::optional<ShareNews> take();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace canopy::app
