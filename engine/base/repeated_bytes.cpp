#include "engine/base/repeated_bytes.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "engine/base/checked.h"
#include "engine/base/error.h"

#ifdef _WIN32
#error "RepeatedBytes has no Windows version yet."
#endif

#include <sys/mman.h>
#include <unistd.h>

namespace canopy {
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
}

RepeatedBytes::RepeatedBytes(RepeatedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

RepeatedBytes& RepeatedBytes::operator=(RepeatedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

RepeatedBytes::~RepeatedBytes() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace canopy
