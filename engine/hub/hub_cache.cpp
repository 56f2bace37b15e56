#include "engine/hub/hub_cache.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <set>
#include <system_error>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRepoPrefix = "models--";
constexpr std::string_view kIncompleteEnding = ".incomplete";
constexpr int kDeepestFolder = 4;  // of a snapshot that is looked into
constexpr size_t kMostSnapshotFiles = 10'000;
constexpr uint64_t kMostRefBytes = 256;

fs::path folder_from(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0 ? fs::path(value) : fs::path();
}

std::string without_slashes(std::string_view text) {
  std::string name;
  for (const char c : text) name += c == '/' ? std::string("--") : std::string(1, c);
  return name;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error && !fs::is_directory(folder))
    throw bad_input("The folder " + shown(folder) + " cannot be made: " + error.message() + ".");
}

/// The files of a snapshot with their sizes; links are followed, and those that lead nowhere are left out.
std::vector<HubFile> snapshot_files(const fs::path& snapshot) {
  std::vector<HubFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(snapshot, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end && files.size() < kMostSnapshotFiles; it.increment(error)) {
    std::error_code unknown;
    if (it.depth() >= kDeepestFolder) it.disable_recursion_pending();
    if (!it->is_regular_file(unknown)) continue;
    const uint64_t bytes = it->file_size(unknown);
    if (!unknown) files.push_back({it->path().lexically_relative(snapshot).generic_string(), bytes, ""});
  }
  std::ranges::sort(files, {}, &HubFile::path);
  return files;
}

/// The snapshots of a repository, that of main first, then the newest ones.
std::vector<fs::path> snapshots_of(const fs::path& folder) {
  std::string main;
  try {
    main = read_small_file(folder / "refs" / "main", kMostRefBytes);
    while (!main.empty() && (main.back() == '\n' || main.back() == '\r')) main.pop_back();
  } catch (const Error&) {  // there is no such ref
  }
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(folder / "snapshots", error), end; !error && it != end; it.increment(error)) {
    std::error_code unknown;
    const auto time = fs::last_write_time(it->path(), unknown);
    if (!unknown && it->is_directory(unknown))
      found.emplace_back(it->path().filename() == main ? fs::file_time_type::max() : time, it->path());
  }
  std::ranges::sort(found, std::ranges::greater{});
  std::vector<fs::path> paths;
  for (auto& each : found) paths.push_back(std::move(each.second));
  return paths;
}

}  // namespace

fs::path hub_cache_folder() {
  if (fs::path cache = folder_from("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (fs::path home = folder_from("HF_HOME"); !home.empty()) return home / "hub";
  if (fs::path caches = folder_from("XDG_CACHE_HOME"); !caches.empty()) return caches / "huggingface" / "hub";
  if (fs::path home = folder_from(kHome); !home.empty()) return home / ".cache" / "huggingface" / "hub";
  return {};
}

std::string hub_folder_name(std::string_view repo) {
  return std::string(kRepoPrefix) + without_slashes(repo);
}

std::optional<std::string> hub_repo_of(std::string_view folder_name) {
  if (!folder_name.starts_with(kRepoPrefix)) return std::nullopt;
  std::string name(folder_name.substr(kRepoPrefix.size()));
  for (size_t at = name.find("--"); at != std::string::npos; at = name.find("--", at)) name.replace(at, 2, "/");
  return name;
}

HubCache::HubCache(fs::path cache, std::string_view repo) : cache_(std::move(cache)), name_(hub_folder_name(repo)) {
  if (cache_.empty())
    throw bad_input("There is no folder for models: set " + std::string(kHome) + ", or HF_HUB_CACHE to a folder.");
}

fs::path HubCache::incomplete(const std::string& digest) const {
  return folder() / "blobs" / (digest + std::string(kIncompleteEnding));
}

bool HubCache::has(const HubFile& file) const {
  std::error_code error;
  const fs::path path = blob(file.digest);
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == file.bytes && !error;
}

uint64_t HubCache::bytes_there(const HubFile& file) const {
  if (has(file)) return file.bytes;
  std::error_code error;
  const uint64_t bytes = fs::file_size(incomplete(file.digest), error);
  return error ? 0 : std::min(bytes, file.bytes);
}

void HubCache::require_room(uint64_t bytes) const {
  make_folder(folder() / "blobs");
  make_folder(cache_ / ".locks" / name_);
  std::error_code error;
  const fs::space_info space = fs::space(cache_, error);
  if (error || space.available >= bytes) return;
  throw bad_input("There is no room for the download: " + byte_figures(bytes) + " are to be fetched, and " +
                  byte_figures(space.available) + " are free in " + shown(cache_) +
                  ". Make room, or set HF_HUB_CACHE to a folder on another disk.");
}

void HubCache::show(const std::string& commit, const HubFile& file, bool symbolic) const {
  const fs::path place = snapshot(commit) / fs::path(file.path);
  const fs::path whole = blob(file.digest);
  make_folder(place.parent_path());
  std::error_code error;
  if (fs::equivalent(place, whole, error)) return;
  // Beside it and renamed, so that a program that has the old one open or looks now finds one of the two.
  const fs::path beside = file_beside(place, ".canopy-" + std::to_string(::getpid()));
  fs::remove(beside, error);
  error = std::make_error_code(std::errc::not_supported);
  if (symbolic) fs::create_symlink(whole.lexically_relative(place.parent_path()), beside, error);
  if (error) fs::create_hard_link(whole, beside, error);
  if (error) fs::copy_file(whole, beside, error);
  if (!error) fs::rename(beside, place, error);
  if (!error) return;
  const std::string why = error.message();
  fs::remove(beside, error);
  throw bad_input("The file " + shown(place) + " cannot be made: " + why + ".");
}

void HubCache::note_commit(const std::string& revision, const std::string& commit) const {
  const fs::path ref = folder() / "refs" / fs::path(revision);
  make_folder(ref.parent_path());
  write_file_atomically(ref, commit);
}

BlobWriter::BlobWriter(const HubCache& cache, const HubFile& file, const std::stop_token& stop,
                       const std::function<void()>& waiting)
    : blob_(cache.blob(file.digest)), part_(cache.incomplete(file.digest)) {
  const fs::path lock = cache.cache_ / ".locks" / cache.name_ / (file.digest + ".lock");
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) fail("making its lock", errno);
  try {
    // Without waiting in the system, as a stop must be heard.
    while (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) break;  // no locks on this file system: the tools go on then, too
      if (stop.stop_requested()) throw cancelled("The download was stopped.");
      if (waiting) waiting();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    if (cache.has(file)) {
      done_ = true;
      return;
    }
    file_ = ::open(part_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) fail("opening", errno);
    struct stat status = {};
    if (::fstat(file_, &status) != 0) fail("looking at it", errno);
    size_ = static_cast<uint64_t>(status.st_size);
    if (size_ > file.bytes) clear();
  } catch (...) {
    if (file_ >= 0) ::close(file_);
    ::close(lock_);
    throw;
  }
}

BlobWriter::~BlobWriter() {
  if (file_ >= 0) ::close(file_);
  ::close(lock_);  // which frees it
}

void BlobWriter::fail(const char* step, int error) const {
  throw bad_input("The file " + shown(part_) + " cannot be written: " + step +
                  " failed: " + std::generic_category().message(error) + "." + std::string(write_advice(error)));
}

void BlobWriter::read(const std::function<void(std::span<const std::byte>)>& take) const {
  std::vector<std::byte> buffer(size_t{1} << 20);
  for (uint64_t at = 0; at < size_;) {
    const ssize_t got = ::pread(file_, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("reading what is there", got < 0 ? errno : EIO);
    take(std::span(buffer).first(static_cast<size_t>(got)));
    at += static_cast<uint64_t>(got);
  }
}

void BlobWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("writing", errno);
    size_ += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void BlobWriter::clear() {
  if (::ftruncate(file_, 0) != 0) fail("emptying it", errno);
  size_ = 0;
}

void BlobWriter::finish() {
  if (::fsync(file_) != 0) fail("flushing to the disk", errno);
  std::error_code error;
  fs::rename(part_, blob_, error);
  if (error) fail("renaming", error.value());
  done_ = true;
}

std::vector<CachedVariant> cached_variants(const fs::path& cache, const std::string& repo) {
  std::vector<CachedVariant> found;
  const fs::path folder = cache / hub_folder_name(repo);
  std::set<std::pair<std::string, std::string>> known;
  for (const fs::path& snapshot : snapshots_of(folder)) {
    const HubVariants variants = hub_variants(snapshot_files(snapshot));
    const auto add = [&](const HubVariant& variant, bool head) {
      if (!variant.missing.empty() || !known.emplace(variant.label, variant.first).second) return;
      found.push_back({variant, variant.is_folder() ? snapshot : snapshot / fs::path(variant.first), head});
    };
    for (const HubVariant& variant : variants.models) add(variant, false);
    for (const HubFile& head : variants.heads)
      add({head.path.substr(head.path.rfind('/') + 1), head.path, {head}, ""}, true);
  }
  return found;
}

fs::path find_in_hub_cache(const fs::path& cache, const HubName& name) {
  const std::vector<CachedVariant> there = cached_variants(cache, name.repo);
  const std::string fetch = "canopy-cli get " + name.text();
  if (there.empty()) {
    throw bad_input("There is no model " + quoted_name(name.text()) +
                    " in the Hugging Face cache, and no file or folder of that name; '" + printable(fetch) +
                    "' fetches it.");
  }
  HubVariants variants;
  for (const CachedVariant& each : there) {
    if (each.head)
      variants.heads.push_back(each.variant.files.front());
    else
      variants.models.push_back(each.variant);
  }
  try {
    const HubChoice choice = choose_variant(name, variants);
    for (const CachedVariant& each : there)
      if (each.variant.label == choice.variant.label && each.variant.first == choice.variant.first) return each.path;
  } catch (const Error& e) {
    throw bad_input("In the Hugging Face cache: " + std::string(e.what()) +
                    (name.choice.empty() ? "" : " '" + printable(fetch) + "' fetches it."));
  }
  throw bad_input("There is no model " + quoted_name(name.text()) + " in the Hugging Face cache.");
}

}  // namespace canopy
