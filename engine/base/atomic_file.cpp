#include "engine/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

/// A sentence with what the user can do about this errno value; empty where there is no advice.
std::string_view advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return " Make room on the disk, or choose another folder.";
    case EFBIG:
      return " Files of this size are not allowed there: choose another folder, or raise the limit (ulimit -f).";
    case EACCES:
    case EPERM:
    case EROFS: return " Choose a folder that you may write to.";
    default: return "";
  }
}

[[noreturn]] void fail(const fs::path& path, std::string_view step, int error) {
  throw bad_input("The file " + shown(path) + " cannot be saved: " + std::string(step) +
                  " failed: " + std::generic_category().message(error) + "." + std::string(advice(error)));
}

/// Removes its file unless keep() was called: no failure leaves a temporary file behind.
class TemporaryFile {
 public:
  TemporaryFile(fs::path path, const fs::path& target) : path_(std::move(path)) {
    struct stat old = {};
    // The new file gets the permissions of the file that it replaces.
    const mode_t mode = ::stat(target.c_str(), &old) == 0 ? old.st_mode & 07777 : 0666;
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ < 0) fail(target, "creating a temporary file beside it", errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!kept_) ::unlink(path_.c_str());
  }

  const fs::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  int close() {
    const int result = ::close(descriptor_);
    descriptor_ = -1;
    return result;
  }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  int descriptor_ = -1;
  bool kept_ = false;
};

void write_all(int descriptor, std::span<const std::byte> bytes, const fs::path& target) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(target, "writing", errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

/// Flushes the folder, so that the rename survives a power cut. Errors are ignored: some file systems do not support
/// it.
void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

void write_file_atomically(const fs::path& path, std::string_view content) {
  stream_file_atomically(path, [content](const PutBytes& put) { put(std::as_bytes(std::span(content))); });
}

void stream_file_atomically(const fs::path& path, const std::function<void(const PutBytes& put)>& write) {
  static std::atomic<unsigned> counter{0};
  std::error_code ignored;
  const fs::path resolved = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
  const fs::path target = resolved.empty() ? path : resolved;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string unique = "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";

  TemporaryFile temporary(folder / ("." + target.filename().string() + unique), target);
  write([&](std::span<const std::byte> bytes) { write_all(temporary.descriptor(), bytes, target); });
  if (::fsync(temporary.descriptor()) != 0) fail(target, "flushing to the disk", errno);
  if (temporary.close() != 0) fail(target, "closing", errno);
  if (::rename(temporary.path().c_str(), target.c_str()) != 0) fail(target, "renaming the new file", errno);
  temporary.keep();
  flush_folder(folder);
}

}  // namespace canopy
