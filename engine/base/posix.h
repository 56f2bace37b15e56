#pragma once
// The calls of POSIX that the engine makes on files, wherever it runs: the system's own, or on Windows functions of the
// same names, flags and errno values, which take paths as they are there (UTF-16) and never change line ends. And the
// names of what systems have under different ones.

#ifndef _WIN32
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace canopy {

inline constexpr const char* kHome = "HOME";  // the variable that names the user's folder
inline constexpr const char* kVulkanLoader = "libvulkan.so.1";
/// What to do where the loader or a driver is missing.
inline constexpr const char* kInstallVulkan =
    "Install the driver of your graphics card; on Debian and Ubuntu: libvulkan1 and mesa-vulkan-drivers, which also "
    "brings a software device, or nvidia-driver.";

}  // namespace canopy
#else
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

// What Windows has no word for: 0 where it asks for what is so already, else a value of our own.
constexpr int O_CLOEXEC = _O_NOINHERIT;
constexpr int O_NONBLOCK = 0;
constexpr int O_NOCTTY = 0;
constexpr int F_DUPFD_CLOEXEC = 1;
constexpr int F_GETFL = 2;
constexpr int F_SETFL = 3;
constexpr int F_GETFD = 4;
constexpr int LOCK_EX = 2;
constexpr int LOCK_NB = 4;
constexpr int PROT_READ = 1;
constexpr int MAP_PRIVATE = 2;
constexpr int MADV_WILLNEED = 1;
constexpr int MADV_DONTNEED = 2;
constexpr int _SC_PAGESIZE = 1;
#ifndef EDQUOT
constexpr int EDQUOT = 10069;  // Winsock's WSAEDQUOT
#endif
#define S_ISSOCK(mode) false
#define MAP_FAILED nullptr

/// Others may read, write, rename and delete the file while it is open, as on POSIX. A folder is EISDIR.
int open(const wchar_t* path, int flags, unsigned mode = 0);
int64_t read(int descriptor, void* to, size_t bytes);
int64_t write(int descriptor, const void* from, size_t bytes);
/// At a place in the file, which leaves no trace on where read() and write() go on.
int64_t pread(int descriptor, void* to, size_t bytes, int64_t at);
int64_t pwrite(int descriptor, const void* from, size_t bytes, int64_t at);
int fsync(int descriptor);
inline int fdatasync(int descriptor) {
  return fsync(descriptor);
}
int ftruncate(int descriptor, int64_t bytes);
/// LOCK_EX, alone or with LOCK_NB: until the descriptor is closed. It keeps nobody from the file's bytes.
int flock(int descriptor, int operation);
/// F_DUPFD_CLOEXEC copies the descriptor, F_GETFD fails where it is not open; of flags that can be changed there are
/// none.
int fcntl(int descriptor, int command, int value = 0);
int stat(const wchar_t* path, struct stat* status);
/// Replaces a file that is there, even one that is open where the file system allows it.
int rename(const wchar_t* from, const wchar_t* to);
int unlink(const wchar_t* path);
/// Of a whole file alone, to be read; null (MAP_FAILED) and errno where that fails.
void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor, int64_t offset);
int munmap(void* data, size_t bytes);
int madvise(void* data, size_t bytes, int advice);
constexpr int RTLD_NOW = 0;
constexpr int RTLD_LOCAL = 0;
/// A library by its name, which Windows looks for beside the program and among its own, or by its path.
void* dlopen(const char* name, int flags);
void* dlsym(void* library, const char* name);
int dlclose(void* library);
/// Of _SC_PAGESIZE alone.
long sysconf(int name);

// What programs do with the console, which has no counterpart elsewhere. <windows.h> stays out of their files: its
// macros take names such as `far`.

/// Text goes in and out as UTF-8, and no line breaks are changed in either direction. A program with a window has no
/// console: it writes to the one that it was started from, where there is one and the output goes nowhere else.
void prepare_console();
/// Shows a text in a box of the system's until the user closes it.
void show_message(const std::string& text);
/// Calls `handler` for Ctrl-C, on another thread; where it returns false, the program ends. The last handler counts.
void on_console_interrupt(bool (*handler)());

namespace canopy {

inline constexpr const char* kHome = "USERPROFILE";
inline constexpr const char* kVulkanLoader = "vulkan-1.dll";
inline constexpr const char* kInstallVulkan = "Install the newest driver of your graphics card, which brings Vulkan.";

}  // namespace canopy
#endif
