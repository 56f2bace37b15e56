// The file dialog of Windows (desktop_window.h).
#include "app/platform/com.h"
#include "app/platform/desktop_window.h"
#include "engine/base/error.h"

// The headers of Windows come last, for their macros.
#include <shobjidl.h>

namespace canopy::app {
namespace {

/// COM on the thread of the dialog, which needs an apartment of its own.
class Apartment {
 public:
  Apartment() : begun_(::CoInitializeEx(nullptr, COINIT_APARTMENTTHREADED | COINIT_DISABLE_OLE1DDE)) {}
  ~Apartment() {
    if (SUCCEEDED(begun_)) ::CoUninitialize();
  }
  Apartment(const Apartment&) = delete;
  Apartment& operator=(const Apartment&) = delete;

 private:
  HRESULT begun_;
};

/// While it lives, a timer of this thread closes the dialog once that is wished: only this thread may touch the dialog,
/// which runs the thread's messages until it closes.
class ClosesOnWish {
 public:
  ClosesOnWish(IFileDialog& dialog, const std::atomic<bool>& closing)
      : timer_(::SetTimer(nullptr, 0, kDialogPollMilliseconds, look)) {
    shown_ = &dialog;
    wish_ = &closing;
  }
  ~ClosesOnWish() { ::KillTimer(nullptr, timer_); }
  ClosesOnWish(const ClosesOnWish&) = delete;
  ClosesOnWish& operator=(const ClosesOnWish&) = delete;

 private:
  static void CALLBACK look(HWND, UINT, UINT_PTR, DWORD) {
    if (*wish_) shown_->Close(HRESULT_FROM_WIN32(ERROR_CANCELLED));
  }

  static thread_local IFileDialog* shown_;
  static thread_local const std::atomic<bool>* wish_;
  UINT_PTR timer_;
};

thread_local IFileDialog* ClosesOnWish::shown_ = nullptr;
thread_local const std::atomic<bool>* ClosesOnWish::wish_ = nullptr;

std::string path_of(IShellItem& item) {
  wchar_t* name = nullptr;
  if (FAILED(item.GetDisplayName(SIGDN_FILESYSPATH, &name))) return "";
  const std::string path = std::filesystem::path(name).string();
  ::CoTaskMemFree(name);
  return path;
}

}  // namespace

bool FileDialog::available() {
  return true;
}

// The dialog belongs to no window: the one of the program then stays usable beside it, and need not answer while it
// waits for the dialog's thread to end.
std::vector<std::string> FileDialog::ask(Wanted wanted) const {
  const Apartment apartment;
  const auto dialog = obtained<IFileOpenDialog>([](IFileOpenDialog** made) {
    return ::CoCreateInstance(CLSID_FileOpenDialog, nullptr, CLSCTX_INPROC_SERVER, __uuidof(IFileOpenDialog),
                              reinterpret_cast<void**>(made));
  });
  if (!dialog) {
    log_warning("Windows offers no dialog for files. Drop a file on the window, or open one with --model.");
    return {};
  }
  const bool text = wanted == Wanted::text;
  static constexpr COMDLG_FILTERSPEC kModels[] = {{L"Models (GGUF, config.json)", L"*.gguf;config.json"},
                                                  {L"All files", L"*.*"}};
  dialog->SetTitle(text ? L"Attach text files" : L"Open model");
  if (!text) dialog->SetFileTypes(2, kModels);
  FILEOPENDIALOGOPTIONS options = 0;
  dialog->GetOptions(&options);
  options |= FOS_FORCEFILESYSTEM | FOS_FILEMUSTEXIST | FOS_NOCHANGEDIR;
  if (text) options |= FOS_ALLOWMULTISELECT;
  dialog->SetOptions(options);
  const ClosesOnWish closes(*dialog, closing_);
  if (closing_ || FAILED(dialog->Show(nullptr))) return {};
  const auto items = obtained<IShellItemArray>([&](IShellItemArray** made) { return dialog->GetResults(made); });
  DWORD count = 0;
  if (!items || FAILED(items->GetCount(&count))) return {};
  std::vector<std::string> paths;
  for (DWORD i = 0; i < count; ++i) {
    const auto item = obtained<IShellItem>([&](IShellItem** made) { return items->GetItemAt(i, made); });
    if (std::string path = item ? path_of(*item) : ""; !path.empty()) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace canopy::app
