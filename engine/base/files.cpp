#include "engine/base/files.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <pwd.h>
#endif

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_save(const fs::path& path, const std::string& why) {
  throw bad_input("The file " + shown(path) + " cannot be saved: " + why);
}

[[noreturn]] void fail(const fs::path& path, std::string_view step, int error) {
  fail_to_save(path, std::string(step) + " failed: " + std::generic_category().message(error) + "." +
                         std::string(write_advice(error)));
}

/// The descriptor of this process that a path of /proc or /dev/fd names.
std::optional<int> own_descriptor(const fs::path& path) {
  std::error_code error;
  const std::string folder = fs::canonical(path.parent_path(), error).string();
  const std::string own = "/proc/" + std::to_string(::getpid()) + "/";
  if (error || !folder.starts_with(own) || !folder.ends_with("/fd")) return std::nullopt;
  const std::string name = path.filename().string();
  int descriptor = -1;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), descriptor);
  if (read.ec != std::errc() || read.ptr != name.data() + name.size()) return std::nullopt;
  return descriptor;
}

/// What `path` leads to behind all symbolic links; it need not be there. A link to an open descriptor stays one: what
/// it names may have no path any more, and its place in the file counts.
fs::path behind_links(fs::path path) {
  constexpr int most_links = 40;
  for (int links = 0; links < most_links; ++links) {
    std::error_code error;
    if (!fs::is_symlink(path, error) || own_descriptor(path)) return path;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return path;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

/// A descriptor that is written to, and closed at the latest when this goes.
class OutputDescriptor {
 public:
  explicit OutputDescriptor(int descriptor) : descriptor_(descriptor) {}
  OutputDescriptor(const OutputDescriptor&) = delete;
  OutputDescriptor& operator=(const OutputDescriptor&) = delete;
  ~OutputDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  int close() { return ::close(std::exchange(descriptor_, -1)); }

 private:
  int descriptor_;
};

/// Removes its file unless keep() was called: no failure leaves a temporary file behind. Its name is short, so that
/// every name that the file system takes can be written.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) : path_(folder_of(target) / name()), file_(open(path_, target)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!kept_) ::unlink(path_.c_str());
  }

  const fs::path& path() const { return path_; }
  OutputDescriptor& file() { return file_; }
  void keep() { kept_ = true; }

  static fs::path folder_of(const fs::path& target) {
    return target.has_parent_path() ? target.parent_path() : fs::path(".");
  }

 private:
  static std::string name() {
    static std::atomic<unsigned> counter{0};
    return ".canopy-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
  }
  static int open(const fs::path& path, const fs::path& target) {
    struct stat old = {};
    // The new file gets the permissions of the file that it replaces.
    const mode_t mode = ::stat(target.c_str(), &old) == 0 ? old.st_mode & 07777 : 0666;
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0) fail(target, "creating a temporary file beside it", errno);
    return descriptor;
  }

  fs::path path_;
  OutputDescriptor file_;
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
void flush_folder([[maybe_unused]] const fs::path& folder) {
#ifndef _WIN32  // there renaming does it
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
#endif
}

/// A descriptor that writes into what is no ordinary file.
int open_to_write_into(const fs::path& target, PipeWithoutReader pipes) {
  if (const auto own = own_descriptor(target)) {
    const int copy = ::fcntl(*own, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) fail(target, "opening", errno);
    return copy;
  }
  struct stat status = {};
  if (::stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail_to_save(target, "it is a folder; name a file in it.");
    if (S_ISSOCK(status.st_mode))
      fail_to_save(target, "it is a socket, which cannot be opened; name a file or a pipe.");
  }
  const int wait = pipes == PipeWithoutReader::wait ? 0 : O_NONBLOCK;
  const int descriptor = ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | wait);
  if (descriptor < 0 && errno == ENXIO && S_ISFIFO(status.st_mode))
    fail_to_save(target, "it is a named pipe that no program reads from.");
  if (descriptor < 0) fail(target, "opening", errno);
  if (wait != 0) ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

bool is_no_file(const fs::path& target) {
  std::error_code error;
  return own_descriptor(target) || (fs::exists(target, error) && !fs::is_regular_file(target, error));
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  const bool a_exists = fs::exists(a, error), b_exists = fs::exists(b, error);
  if (a_exists && b_exists) return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  if (a_exists || b_exists) return false;
  // Neither is there yet: a name in a folder, however the folder is called.
  const auto place = [&error](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(behind_links(path), error), error);
  };
  return place(a) == place(b);
}

bool names_a_file(const NamedFile& file) {
  return !file.path.empty() && file.path != "-";
}

}  // namespace

std::string_view write_advice(int error) {
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

void write_file_atomically(const fs::path& path, std::string_view content, PipeWithoutReader pipes) {
  stream_file_atomically(
      path, [content](const PutBytes& put) { put(std::as_bytes(std::span(content))); }, pipes);
}

void stream_file_atomically(const fs::path& path, const std::function<void(const PutBytes& put)>& write,
                            PipeWithoutReader pipes) {
  const fs::path target = behind_links(path);
  const auto write_to = [&](const OutputDescriptor& file) {
    write([&](std::span<const std::byte> bytes) { write_all(file.get(), bytes, target); });
  };
  std::error_code error;
  if (fs::is_symlink(target, error) && !own_descriptor(target)) fail(path, "following its links", ELOOP);
  if (is_no_file(target)) {
    OutputDescriptor file(open_to_write_into(target, pipes));
    write_to(file);
    if (file.close() != 0) fail(target, "closing", errno);
    return;
  }
  TemporaryFile temporary(target);
  write_to(temporary.file());
  if (::fsync(temporary.file().get()) != 0) fail(target, "flushing to the disk", errno);
  if (temporary.file().close() != 0) fail(target, "closing", errno);
  if (::rename(temporary.path().c_str(), target.c_str()) != 0) fail(target, "renaming the new file", errno);
  temporary.keep();
  flush_folder(TemporaryFile::folder_of(target));
}

fs::path file_beside(const fs::path& file, std::string_view ending) {
  constexpr size_t longest_name = 255;  // bytes, of every file system in use
  std::string name = file.filename().string();
  if (name.size() + ending.size() > longest_name) name = "." + damage_hash_text(name);
  return file.parent_path() / (name + std::string(ending));
}

NewFile make_private_file(const fs::path& folder, std::string_view stem, std::string_view ending) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    const uint64_t number = uint64_t{random()} << 32 | random();
    const fs::path path = folder / (std::string(stem) + "-" + std::to_string(number) + std::string(ending));
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor >= 0) return {path, descriptor};
    if (errno != EEXIST) break;
  }
  return {};
}

bool is_written_into(const fs::path& path) {
  return is_no_file(behind_links(path));
}

void require_other_files(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (!names_a_file(output)) continue;
    for (const NamedFile& input : inputs) {
      if (!names_a_file(input) || !is_same_file(output.path, input.path)) continue;
      throw bad_input(output.name + " would overwrite " + input.name + " " + shown(input.path) +
                      "; choose another file.");
    }
    for (const NamedFile& other : outputs.first(i)) {
      if (!names_a_file(other) || !is_same_file(output.path, other.path)) continue;
      throw bad_input(output.name + " and " + other.name + " name the same file, " + shown(output.path) +
                      "; choose another file for one of them.");
    }
  }
}

namespace {

#ifdef _WIN32
fs::path from_environment(const char* name) {
  const wchar_t* value = ::_wgetenv(fs::path(name).c_str());
  return value == nullptr ? fs::path() : fs::path(value);
}
#else
fs::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

fs::path home() {
  if (fs::path path = from_environment("HOME"); path.is_absolute()) return path;
  std::vector<char> buffer(16 * 1024);
  passwd entry = {};
  passwd* found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr &&
      found->pw_dir != nullptr && fs::path(found->pw_dir).is_absolute()) {
    return found->pw_dir;
  }
  throw bad_input("No home folder is known: set the environment variable HOME to an absolute path.");
}
#endif

/// Creates `folder` and returns it; the error message names `variable`, the environment variable that can move it.
fs::path created(const fs::path& folder, const std::string& variable) {
  std::error_code error;
  if (fs::create_directories(folder, error)) {
    std::error_code ignored;  // a file system without permissions is fine
    fs::permissions(folder, fs::perms::owner_all, ignored);
  }
  const std::string advice = " Set the environment variable " + variable + " to a folder that you may write to.";
  if (error) throw bad_input("The folder " + shown(folder) + " cannot be created: " + error.message() + "." + advice);
  if (!fs::is_directory(folder, error)) {
    throw bad_input("A folder is expected, but " + shown(folder) + " is a file." + advice);
  }
  return folder;
}

#ifdef _WIN32  // below %LOCALAPPDATA%/canopy
constexpr const char *kCacheFolder = "cache", *kConfigFolder = "config", *kDataFolder = "data";
#else  // below the home folder
constexpr const char *kCacheFolder = ".cache", *kConfigFolder = ".config", *kDataFolder = ".local/share";
#endif

/// The specification says that relative values are to be ignored.
fs::path xdg(const char* variable, const char* folder) {
  if (fs::path base = from_environment(variable); base.is_absolute()) return base / "canopy";
#ifdef _WIN32
  // Windows has one folder for what belongs to a user of this machine.
  if (fs::path base = from_environment("LOCALAPPDATA"); base.is_absolute()) return base / "canopy" / folder;
  throw bad_input(
      "No folder for files of programs is known: set the environment variable LOCALAPPDATA to an absolute path.");
#else
  return home() / folder / "canopy";
#endif
}

}  // namespace

fs::path cache_dir() {
  if (fs::path chosen = from_environment("CANOPY_CACHE_DIR"); !chosen.empty())
    return created(fs::absolute(chosen), "CANOPY_CACHE_DIR");
  return created(xdg("XDG_CACHE_HOME", kCacheFolder), "CANOPY_CACHE_DIR");
}

fs::path config_dir() {
  return created(xdg("XDG_CONFIG_HOME", kConfigFolder), "XDG_CONFIG_HOME");
}

fs::path data_dir() {
  return created(xdg("XDG_DATA_HOME", kDataFolder), "XDG_DATA_HOME");
}

namespace {

/// The file of the running program; empty where the system does not tell it.
fs::path this_program() {
#ifdef _WIN32
  std::wstring name(32768, L'\0');  // the longest path there is
  name.resize(::GetModuleFileNameW(nullptr, name.data(), static_cast<DWORD>(name.size())));
  return name;
#else
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
#endif
}

}  // namespace

std::optional<std::filesystem::path> find_asset(std::string_view name) {
  std::error_code error;
  const fs::path program = this_program();
  if (program.empty()) return std::nullopt;
  for (const char* folder : {"assets", "share/canopy", "lib/canopy"}) {
    const fs::path path = program.parent_path().parent_path() / folder / name;
    if (fs::exists(path, error)) return path;
  }
  return std::nullopt;
}

}  // namespace canopy
