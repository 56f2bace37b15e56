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

void FileDialog::open(Wanted wanted) {
  if (open_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this, wanted] {
    const bool text = wanted == Wanted::text;
    const std::vector<std::string> models = {"Models (GGUF, config.json)", "*.gguf config.json", "All files", "*"};
    const std::vector<std::string> all = {"All files", "*"};
    pfd::open_file dialog(text ? "Attach text files" : "Open model", "", text ? all : models,
                          text ? pfd::opt::multiselect : pfd::opt::none);
    while (!dialog.ready(kPollMilliseconds)) {
      if (!closing_) continue;
      dialog.kill();
      open_ = false;
      return;
    }
    const std::vector<std::string> paths = dialog.result();
    if (!paths.empty()) {
      const std::lock_guard lock(mutex_);
      chosen_ = ChosenFiles{paths, text};
    }
    open_ = false;
    wake_();
  });
}

std::optional<ChosenFiles> FileDialog::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(chosen_, std::nullopt);
}

}  // namespace canopy::app
