#ifdef _WIN32
#include <io.h>
#include <windows.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <codecvt>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <locale>
#include <system_error>
#include <utility>

#include "engine/base/atomic_wait.h"
#include "engine/base/posix.h"

// libstdc++ makes paths of strings by this facet, which takes bytes for letters wherever the C library knows no UTF-8,
// and gives paths back as UTF-8. Here both are UTF-8, as everywhere in Canopy. All members that libstdc++ has in one
// object are here, so that the linker does not take that object.
namespace std {
namespace {

const codecvt_utf8_utf16<wchar_t>& utf8() {
  static const codecvt_utf8_utf16<wchar_t> facet(1);
  return facet;
}

}  // namespace

using OfPaths = codecvt<wchar_t, char, mbstate_t>;

codecvt_base::result OfPaths::do_out(mbstate_t& state, const wchar_t* from, const wchar_t* from_end,
                                     const wchar_t*& from_next, char* to, char* to_end, char*& to_next) const {
  return utf8().out(state, from, from_end, from_next, to, to_end, to_next);
}
codecvt_base::result OfPaths::do_in(mbstate_t& state, const char* from, const char* from_end, const char*& from_next,
                                    wchar_t* to, wchar_t* to_end, wchar_t*& to_next) const {
  return utf8().in(state, from, from_end, from_next, to, to_end, to_next);
}
int OfPaths::do_length(mbstate_t& state, const char* from, const char* end, size_t most) const {
  return utf8().length(state, from, end, most);
}
int OfPaths::do_encoding() const noexcept {
  return 0;  // of no fixed width
}
int OfPaths::do_max_length() const noexcept {
  return 4;
}

}  // namespace std

namespace canopy {

void wait_while(const std::atomic<uint32_t>& value, uint32_t old) {
  static_assert(sizeof value == sizeof old);
  while (value.load(std::memory_order_acquire) == old)
    ::WaitOnAddress(const_cast<std::atomic<uint32_t>*>(&value), &old, sizeof old, INFINITE);
}

void wake_one(std::atomic<uint32_t>& value) {
  ::WakeByAddressSingle(&value);
}

void wake_all(std::atomic<uint32_t>& value) {
  ::WakeByAddressAll(&value);
}

namespace {

/// Sets errno to what the last call of Windows failed with; returns -1.
int failed() {
  const std::error_condition condition =
      std::error_code(static_cast<int>(::GetLastError()), std::system_category()).default_error_condition();
  errno = condition.category() == std::generic_category() ? condition.value() : EIO;
  return -1;
}

HANDLE handle_of(int descriptor) {
  return reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor));
}

DWORD disposition(int flags) {
  if ((flags & O_CREAT) == 0) return (flags & O_TRUNC) != 0 ? TRUNCATE_EXISTING : OPEN_EXISTING;
  if ((flags & O_EXCL) != 0) return CREATE_NEW;
  return (flags & O_TRUNC) != 0 ? CREATE_ALWAYS : OPEN_ALWAYS;
}

DWORD access_of(int flags) {
  const int way = flags & (O_RDONLY | O_WRONLY | O_RDWR);
  const DWORD write = (flags & O_APPEND) != 0 ? FILE_APPEND_DATA | SYNCHRONIZE | FILE_READ_ATTRIBUTES : GENERIC_WRITE;
  return (way != O_WRONLY ? GENERIC_READ : 0) | (way != O_RDONLY ? write : 0);
}

constexpr size_t most_at_once = size_t{1} << 30;  // bytes: what a call takes is an int

}  // namespace
}  // namespace canopy

int open(const wchar_t* path, int flags, unsigned) {
  const DWORD attributes = ::GetFileAttributesW(path);
  if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) {
    errno = EISDIR;
    return -1;
  }
  const HANDLE handle =
      ::CreateFileW(path, canopy::access_of(flags), FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                    canopy::disposition(flags), FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return canopy::failed();
  const int descriptor = ::_open_osfhandle(reinterpret_cast<intptr_t>(handle), flags | _O_BINARY | _O_NOINHERIT);
  if (descriptor < 0) ::CloseHandle(handle);
  return descriptor;
}

int64_t read(int descriptor, void* to, size_t bytes) {
  return ::_read(descriptor, to, static_cast<unsigned>(std::min(bytes, canopy::most_at_once)));
}

int64_t write(int descriptor, const void* from, size_t bytes) {
  return ::_write(descriptor, from, static_cast<unsigned>(std::min(bytes, canopy::most_at_once)));
}

namespace canopy {
namespace {

/// Keeps the place of the descriptor, which calls with a place of their own move.
class KeptPlace {
 public:
  explicit KeptPlace(int descriptor) : descriptor_(descriptor), place_(::_lseeki64(descriptor, 0, SEEK_CUR)) {}
  ~KeptPlace() { ::_lseeki64(descriptor_, place_, SEEK_SET); }

 private:
  int descriptor_;
  int64_t place_;
};

OVERLAPPED at_place(int64_t at) {
  OVERLAPPED place = {};
  place.Offset = static_cast<DWORD>(at);
  place.OffsetHigh = static_cast<DWORD>(at >> 32);
  return place;
}

}  // namespace
}  // namespace canopy

int64_t pread(int descriptor, void* to, size_t bytes, int64_t at) {
  const canopy::KeptPlace kept(descriptor);
  OVERLAPPED place = canopy::at_place(at);
  DWORD count = 0;
  const auto size = static_cast<DWORD>(std::min(bytes, canopy::most_at_once));
  if (::ReadFile(canopy::handle_of(descriptor), to, size, &count, &place) != 0) return count;
  return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : canopy::failed();
}

int64_t pwrite(int descriptor, const void* from, size_t bytes, int64_t at) {
  const canopy::KeptPlace kept(descriptor);
  OVERLAPPED place = canopy::at_place(at);
  DWORD count = 0;
  const auto size = static_cast<DWORD>(std::min(bytes, canopy::most_at_once));
  return ::WriteFile(canopy::handle_of(descriptor), from, size, &count, &place) != 0 ? count : canopy::failed();
}

int ftruncate(int descriptor, int64_t bytes) {
  const int error = ::_chsize_s(descriptor, bytes);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int flock(int descriptor, int operation) {
  // A byte that no file has: locks of Windows forbid others to read what they hold.
  OVERLAPPED place = canopy::at_place(INT64_MAX - 1);
  const DWORD flags = LOCKFILE_EXCLUSIVE_LOCK | ((operation & LOCK_NB) != 0 ? LOCKFILE_FAIL_IMMEDIATELY : 0);
  if (::LockFileEx(canopy::handle_of(descriptor), flags, 0, 1, 0, &place) != 0) return 0;
  if (::GetLastError() != ERROR_LOCK_VIOLATION && ::GetLastError() != ERROR_IO_PENDING) return canopy::failed();
  errno = EWOULDBLOCK;
  return -1;
}

int fsync(int descriptor) {
  return ::_commit(descriptor);
}

int fcntl(int descriptor, int command, int) {
  if (command == F_GETFD) return ::_get_osfhandle(descriptor) >= 0 ? 0 : -1;
  if (command != F_DUPFD_CLOEXEC) return 0;
  const int copy = ::_dup(descriptor);
  if (copy >= 0) ::_setmode(copy, _O_BINARY);
  return copy;
}

int stat(const wchar_t* path, struct stat* status) {
  return ::_wstat64(path, status);
}

int rename(const wchar_t* from, const wchar_t* to) {
  return ::MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0 ? 0 : canopy::failed();
}

int unlink(const wchar_t* path) {
  return ::DeleteFileW(path) != 0 ? 0 : canopy::failed();
}

void* mmap(void*, size_t bytes, int, int, int descriptor, int64_t) {
  const HANDLE mapping = ::CreateFileMappingW(canopy::handle_of(descriptor), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (mapping == nullptr) {
    canopy::failed();
    return MAP_FAILED;
  }
  void* const data = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, bytes);
  if (data == nullptr) canopy::failed();
  ::CloseHandle(mapping);  // the view keeps it
  return data;
}

int munmap(void* data, size_t) {
  return ::UnmapViewOfFile(data) != 0 ? 0 : canopy::failed();
}

int madvise(void* data, size_t bytes, int advice) {
  if (advice == MADV_WILLNEED) {
    WIN32_MEMORY_RANGE_ENTRY range = {data, bytes};
    return ::PrefetchVirtualMemory(::GetCurrentProcess(), 1, &range, 0) != 0 ? 0 : canopy::failed();
  }
  // Pages that are not locked leave the memory of the process by being unlocked, which then is an error.
  ::VirtualUnlock(data, bytes);
  return 0;
}

void* dlopen(const char* name, int) {
  return ::LoadLibraryW(std::filesystem::path(name).c_str());
}

void* dlsym(void* library, const char* name) {
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
}

int dlclose(void* library) {
  return ::FreeLibrary(static_cast<HMODULE>(library)) != 0 ? 0 : canopy::failed();
}

void prepare_console() {
  if (::AttachConsole(ATTACH_PARENT_PROCESS) != 0) {
    const std::pair<std::FILE*, int> outputs[] = {{stdout, STDOUT_FILENO}, {stderr, STDERR_FILENO}};
    for (const auto& [file, descriptor] : outputs) {
      if (fcntl(descriptor, F_GETFD) == 0) continue;  // it was given another output
      // The file gets a descriptor of its own; who writes to the usual one finds the console, too.
      if (std::freopen("CONOUT$", "wb", file) != nullptr) ::_dup2(::_fileno(file), descriptor);
    }
    std::clog.clear();
    std::cerr.clear();
    std::cout.clear();
  }
  ::SetConsoleOutputCP(CP_UTF8);
  ::SetConsoleCP(CP_UTF8);
  for (int descriptor = 0; descriptor <= 2; ++descriptor) ::_setmode(descriptor, _O_BINARY);
}

void show_message(const std::string& text) {
  ::MessageBoxW(nullptr, std::filesystem::path(text).c_str(), L"Canopy", MB_OK | MB_ICONERROR | MB_SETFOREGROUND);
}

void on_console_interrupt(bool (*handler)()) {
  static std::atomic<bool (*)()> current;
  current = handler;
  static const BOOL taken = ::SetConsoleCtrlHandler(
      [](DWORD event) -> BOOL { return (event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT) && current.load()(); },
      TRUE);
  (void)taken;
}

long sysconf(int) {
  SYSTEM_INFO info = {};
  ::GetSystemInfo(&info);
  return static_cast<long>(info.dwPageSize);
}
#endif
