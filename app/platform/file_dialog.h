#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace canopy::app {

/// Files that the user gave the window.
struct ChosenFiles {
  std::vector<std::string> paths;
  bool to_attach = false;  // chosen to go with the next question, whatever they are
};

/// The system's dialog for opening a model or choosing text files, on a thread of its own, so that the window goes on
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
  /// What was chosen since the last call.
  std::optional<ChosenFiles> take();

 private:
  std::function<void()> wake_;
  std::mutex mutex_;
  std::optional<ChosenFiles> chosen_;
  std::atomic<bool> open_{false};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace canopy::app
