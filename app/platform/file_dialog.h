#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace canopy::app {

/// The system's dialog for opening a model or choosing a text file, on a thread of its own, so that the window goes on
/// drawing while it is open.
class FileDialog {
 public:
  /// Whether this system has a program for dialogs (zenity, kdialog, ...).
  static bool available();

  /// wake is called on the dialog's thread when the dialog closes.
  explicit FileDialog(std::function<void()> wake) : wake_(std::move(wake)) {}
  /// Closes an open dialog and waits for its thread.
  ~FileDialog();

  enum class Wanted { model, text };

  /// Opens the dialog unless it is open.
  void open(Wanted wanted);
  /// The path that was chosen since the last call.
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
