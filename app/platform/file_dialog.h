#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace canopy::app {

/// The system's dialog for opening a model, on a thread of its own: the window goes on drawing while it is open.
class FileDialog {
 public:
  /// Whether this system has a dialog (zenity, kdialog, ...) to show.
  static bool available();

  /// wake is called from the dialog's thread when it closes.
  explicit FileDialog(std::function<void()> wake) : wake_(std::move(wake)) {}
  /// Waits for an open dialog's thread; the dialog is closed first.
  ~FileDialog();

  /// Opens the dialog unless it is open.
  void open();
  /// The path chosen since the last call.
  std::optional<std::string> take();

 private:
  std::function<void()> wake_;
  std::mutex mutex_;
  std::optional<std::string> chosen_;
  std::atomic<bool> open_{false};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace canopy::app
