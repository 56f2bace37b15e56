#include "app/platform/file_dialog.h"

#include <portable_file_dialogs.h>

#include <utility>

namespace canopy::app {
namespace {

constexpr int kPollMilliseconds = 50;

}  // namespace

bool FileDialog::available() {
  return pfd::settings::available();
}

FileDialog::~FileDialog() {
  closing_ = true;
  if (thread_.joinable()) thread_.join();
}

void FileDialog::open() {
  if (open_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this] {
    pfd::open_file dialog("Open model", "", {"Models (GGUF, config.json)", "*.gguf config.json", "All files", "*"});
    while (!dialog.ready(kPollMilliseconds)) {
      if (!closing_) continue;
      dialog.kill();
      open_ = false;
      return;
    }
    const std::vector<std::string> paths = dialog.result();
    if (!paths.empty()) {
      const std::lock_guard lock(mutex_);
      chosen_ = paths.front();
    }
    open_ = false;
    wake_();
  });
}

std::optional<std::string> FileDialog::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(chosen_, std::nullopt);
}

}  // namespace canopy::app
