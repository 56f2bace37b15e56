#include "engine/base/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

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

/// The specification says that relative values are to be ignored.
fs::path xdg(const char* variable, const char* below_home) {
  if (fs::path base = from_environment(variable); base.is_absolute()) return base / "canopy";
  return home() / below_home / "canopy";
}

}  // namespace

fs::path cache_dir() {
  if (fs::path chosen = from_environment("CANOPY_CACHE_DIR"); !chosen.empty())
    return created(fs::absolute(chosen), "CANOPY_CACHE_DIR");
  return created(xdg("XDG_CACHE_HOME", ".cache"), "CANOPY_CACHE_DIR");
}

fs::path config_dir() {
  return created(xdg("XDG_CONFIG_HOME", ".config"), "XDG_CONFIG_HOME");
}

fs::path data_dir() {
  return created(xdg("XDG_DATA_HOME", ".local/share"), "XDG_DATA_HOME");
}

std::optional<std::filesystem::path> find_asset(std::string_view name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  for (const char* folder : {"assets", "share/canopy"}) {
    const fs::path path = program.parent_path().parent_path() / folder / name;
    if (fs::exists(path, error)) return path;
  }
  return std::nullopt;
}

}  // namespace canopy
