#include "engine/base/mapped_file.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

#include "engine/base/numbers.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"

#ifdef _WIN32
#include <io.h>
#include <windows.h>
#endif

namespace canopy {
#ifndef _WIN32
namespace {

// State read by the signal handler, in which only lock-free atomics are allowed.
struct Slot {
  std::atomic<uintptr_t> begin{0};  // 0: free
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> lost{false};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::array<Slot, 4096> slots;  // a model has at most some 1000 shards
std::mutex slots_mutex;        // for claiming one
struct sigaction previous;
uintptr_t page_bytes = 4096;

/// Maps zeros over the mapping from the lost page to its end: if the file was shrunk, all later pages are lost too.
bool replace_by_zeros(uintptr_t address) {
  for (Slot& slot : slots) {
    const uintptr_t begin = slot.begin;
    const uintptr_t end = slot.end;
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t page = address / page_bytes * page_bytes;
    const uintptr_t past = (end + page_bytes - 1) / page_bytes * page_bytes;
    slot.lost = true;
    return ::mmap(reinterpret_cast<void*>(page), past - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                  0) != MAP_FAILED;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool handled = replace_by_zeros(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved;
  if (handled) return;  // the instruction runs again, and reads zeros
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  ::signal(SIGBUS, SIG_DFL);  // the instruction runs again, and ends the process as it would have without us
}

void install_handler() {
  static const bool installed = [] {
    page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &previous) == 0;
  }();
  (void)installed;  // without a handler, things are as they were before
}

}  // namespace

LostPagesWatch::LostPagesWatch(std::span<const std::byte> mapping) {
  install_handler();
  const std::lock_guard lock(slots_mutex);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].begin != 0) continue;
    slots[i].lost = false;
    slots[i].end = reinterpret_cast<uintptr_t>(mapping.data()) + mapping.size();
    slots[i].begin = reinterpret_cast<uintptr_t>(mapping.data());
    slot_ = static_cast<int>(i);
    return;
  }
  throw out_of_memory("More than " + std::to_string(slots.size()) + " files are open at a time.");
}

LostPagesWatch::LostPagesWatch(LostPagesWatch&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

LostPagesWatch& LostPagesWatch::operator=(LostPagesWatch&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

LostPagesWatch::~LostPagesWatch() {
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].begin = 0;
}

bool LostPagesWatch::lost() const noexcept {
  return slot_ >= 0 && slots[static_cast<size_t>(slot_)].lost;
}
#else
// Windows lets nobody shrink a file that is mapped. A page that a failed drive cannot give ends the process.
LostPagesWatch::LostPagesWatch(std::span<const std::byte>) {}
LostPagesWatch::LostPagesWatch(LostPagesWatch&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}
LostPagesWatch& LostPagesWatch::operator=(LostPagesWatch&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}
LostPagesWatch::~LostPagesWatch() = default;
bool LostPagesWatch::lost() const noexcept {
  return false;
}
#endif

namespace {

constexpr size_t max_shown_path = 1024;

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// Owns a descriptor until release().
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

/// Opens a regular file and fills `status`.
int open_regular(const std::filesystem::path& path, struct stat& status) {
  // O_NONBLOCK: opening a named pipe must fail below, not wait for a writer.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) {
    if (errno == ENOENT) throw bad_input("The file " + shown(path) + " does not exist.");
    if (errno == EISDIR) throw bad_input("A file is expected, but " + shown(path) + " is a directory.");  // on Windows
    throw bad_input("The file " + shown(path) + " cannot be opened: " + reason(errno) + ".");
  }
  if (::fstat(descriptor.get(), &status) != 0) {
    throw bad_input("The file " + shown(path) + " cannot be examined: " + reason(errno) + ".");
  }
  if (S_ISDIR(status.st_mode)) throw bad_input("A file is expected, but " + shown(path) + " is a directory.");
  if (!S_ISREG(status.st_mode)) {
    throw bad_input(
        "A file is expected, but " + shown(path) +
        " is a device or a pipe. What is mapped into memory must be a file: write its content to one first.");
  }
  return descriptor.release();
}

/// When the open file was last written to, in nanoseconds since a time that the system chose.
int64_t modified_ns([[maybe_unused]] int descriptor, [[maybe_unused]] const struct stat& status) {
#ifdef _WIN32
  FILETIME written = {};
  ::GetFileTime(reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor)), nullptr, nullptr, &written);
  return static_cast<int64_t>((uint64_t{written.dwHighDateTime} << 32 | written.dwLowDateTime) * 100);
#else
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
#endif
}

}  // namespace

std::string shown(const std::filesystem::path& path) {
  return printable(path.string(), max_shown_path);
}

MappedFile MappedFile::open(const std::filesystem::path& path) {
  struct stat status = {};
  MappedFile file;
  file.path_ = path;
  file.descriptor_ = open_regular(path, status);
  if (status.st_size == 0) throw bad_input("The file " + shown(path) + " is empty.");
  const auto size = static_cast<size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor_, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    const std::string limit = error == ENOMEM ? address_space_words() : "";
    throw bad_input("The file " + shown(path) + " of " + std::to_string(size) +
                    " bytes cannot be mapped: " + reason(error) + "." + limit);
  }
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  file.watch_ = LostPagesWatch(file.bytes());
  file.modified_ns_ = modified_ns(file.descriptor_, status);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  descriptor_ = std::exchange(other.descriptor_, -1);
  modified_ns_ = other.modified_ns_;
  watch_ = std::move(other.watch_);
  return *this;
}

MappedFile::~MappedFile() {
  close();
}

void MappedFile::close() noexcept {
  watch_ = LostPagesWatch();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
  data_ = nullptr;
  descriptor_ = -1;
}

void MappedFile::check_unchanged() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) {
    throw bad_input("The file " + shown(path_) + " cannot be examined any more: " + reason(errno) + ".");
  }
  if (static_cast<size_t>(status.st_size) != size_) {
    throw bad_input("The file " + shown(path_) + " changed while it was open: it had " + std::to_string(size_) +
                    " bytes and now has " + std::to_string(status.st_size) + ".");
  }
  if (modified_ns(descriptor_, status) != modified_ns_) {
    throw bad_input("The file " + shown(path_) + " was written to while it was open; open it again.");
  }
  if (watch_.lost()) {
    throw bad_input("A part of the file " + shown(path_) +
                    " could not be read: its disk or network drive failed, or the file was shrunk for a while.");
  }
}

void MappedFile::prefetch(std::span<const std::byte> part) noexcept {
  constexpr uintptr_t most = 128 << 10;  // Linux reads no more at a call than a disk's read-ahead, often this much
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t end = reinterpret_cast<uintptr_t>(part.data()) + part.size();
  for (uintptr_t at = reinterpret_cast<uintptr_t>(part.data()) / page * page; at < end; at += most) {
    ::madvise(reinterpret_cast<void*>(at), std::min(most, end - at), MADV_WILLNEED);
  }
}

void MappedFile::forget(std::span<const std::byte> part) noexcept {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(part.data()) + part.size()) / page * page;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::string read_small_file(const std::filesystem::path& path, uint64_t max_bytes) {
  struct stat status = {};
  const Descriptor descriptor(open_regular(path, status));
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > max_bytes) {
    throw bad_input("The file " + shown(path) + " has " + std::to_string(size) + " bytes; at most " +
                    std::to_string(max_bytes) + " are allowed.");
  }
  std::string text(size, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(descriptor.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw bad_input("The file " + shown(path) + " cannot be read: " + reason(errno) + ".");
    if (got == 0) break;  // shrunk since fstat: what is left is all there is
    filled += static_cast<size_t>(got);
  }
  text.resize(filled);
  return text;
}

#ifndef _WIN32
namespace {

[[noreturn]] void no_room(uint64_t bytes) {
  throw out_of_memory("The system gives no room for a pattern over " + std::to_string(bytes) +
                      " bytes: " + std::generic_category().message(errno) + ".");
}

/// A file without a name, in memory, with the pattern as its contents.
class PatternFile {
 public:
  explicit PatternFile(std::span<const std::byte> pattern) : descriptor_(::memfd_create("pattern", MFD_CLOEXEC)) {
    if (descriptor_ < 0) no_room(pattern.size());
    for (size_t done = 0; done < pattern.size();) {
      const ssize_t written = ::write(descriptor_, pattern.data() + done, pattern.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        const int error = errno;
        ::close(descriptor_);
        errno = error;
        no_room(pattern.size());
      }
      done += static_cast<size_t>(written);
    }
  }
  PatternFile(const PatternFile&) = delete;
  PatternFile& operator=(const PatternFile&) = delete;
  ~PatternFile() { ::close(descriptor_); }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace
#endif

uint64_t RepeatedBytes::page() {
  return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

RepeatedBytes::RepeatedBytes(std::span<const std::byte> pattern, uint64_t bytes) {
  if (pattern.empty() || pattern.size() % page() != 0) {
    throw bad_input("A pattern of " + std::to_string(pattern.size()) +
                    " bytes was to be repeated; allowed: multiples of " + std::to_string(page()) + " above 0.");
  }
  const uint64_t times = bytes / pattern.size() + 1;
  const auto size = checked_cast<size_t>(checked_mul<uint64_t>(times, pattern.size(), "size of a repeated pattern"),
                                         "size of a repeated pattern");
#ifdef _WIN32
  // Views of a file lie 64 KiB apart at the least, so here the pattern is copied, and takes the room of all copies.
  void* const range = ::VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (range == nullptr) {
    throw out_of_memory("The system gives no room for a pattern over " + std::to_string(size) +
                        " bytes: " + std::system_category().message(static_cast<int>(::GetLastError())) + ".");
  }
  for (size_t at = 0; at < size; at += pattern.size())
    std::copy(pattern.begin(), pattern.end(), static_cast<std::byte*>(range) + at);
  data_ = static_cast<const std::byte*>(range);
  size_ = size;
#else
  const PatternFile file(pattern);
  void* const range = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) no_room(size);
  data_ = static_cast<const std::byte*>(range);
  size_ = size;
  for (size_t at = 0; at < size; at += pattern.size()) {
    void* const place = static_cast<std::byte*>(range) + at;
    if (::mmap(place, pattern.size(), PROT_READ, MAP_SHARED | MAP_FIXED, file.get(), 0) != MAP_FAILED) continue;
    const int error = errno;
    ::munmap(range, size);
    errno = error;
    no_room(size);
  }
#endif
}

RepeatedBytes::RepeatedBytes(RepeatedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

RepeatedBytes& RepeatedBytes::operator=(RepeatedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

RepeatedBytes::~RepeatedBytes() {
  if (data_ == nullptr) return;
#ifdef _WIN32
  ::VirtualFree(const_cast<std::byte*>(data_), 0, MEM_RELEASE);
#else
  ::munmap(const_cast<std::byte*>(data_), size_);
#endif
}

}  // namespace canopy
