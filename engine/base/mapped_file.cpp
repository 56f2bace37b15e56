#include "engine/base/mapped_file.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"

#ifdef _WIN32
#error "MappedFile has no Windows version yet."
#endif

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace canopy {
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

int64_t modified_ns(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
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
  file.modified_ns_ = modified_ns(status);
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
  if (modified_ns(status) != modified_ns_) {
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

}  // namespace canopy
