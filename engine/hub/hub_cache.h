#pragma once
// The cache that Hugging Face's own tools and others share, in its own layout, so that a model is on the disk once:
//   models--OWNER--REPO/blobs/DIGEST            a file; DIGEST.incomplete, the beginning of one
//   models--OWNER--REPO/refs/main               the commit that the branch was fetched at
//   models--OWNER--REPO/snapshots/COMMIT/PATH   a link to its blob
//   .locks/models--OWNER--REPO/DIGEST.lock      held while the blob is written
// (https://huggingface.co/docs/hub/local-cache)

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/hub/hub_files.h"

namespace canopy {

/// $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub; empty where there is no
/// home.
std::filesystem::path hub_cache_folder();

/// "Qwen/Qwen3-4B" -> "models--Qwen--Qwen3-4B"
std::string hub_folder_name(std::string_view repo);
/// And back; nothing where a folder has no such name.
std::optional<std::string> hub_repo_of(std::string_view folder_name);

/// The places of one repository in a cache. Nothing is made until it is written.
class HubCache {
 public:
  HubCache(std::filesystem::path cache, std::string_view repo);

  std::filesystem::path folder() const { return cache_ / name_; }
  std::filesystem::path blob(const std::string& digest) const { return folder() / "blobs" / digest; }
  std::filesystem::path incomplete(const std::string& digest) const;
  std::filesystem::path snapshot(const std::string& commit) const { return folder() / "snapshots" / commit; }

  /// Whether the whole file is there.
  bool has(const HubFile& file) const;
  /// Bytes of it that are there, whole or not.
  uint64_t bytes_there(const HubFile& file) const;
  /// Makes the folders, and throws bad_input, with both sizes, where so many bytes are not free.
  void require_room(uint64_t bytes) const;

  /// Shows a file in the snapshot: as a relative link, where links cannot be made as a hard link or a copy.
  void show(const std::string& commit, const HubFile& file, bool symbolic = true) const;
  /// Notes the commit of a branch.
  void note_commit(const std::string& revision, const std::string& commit) const;

 private:
  std::filesystem::path cache_;
  std::string name_;
  friend class BlobWriter;
};

/// Writes one blob, and is the only one that does, in any program: others wait. What it writes stays and is gone on
/// with, until finish() makes a blob of it.
class BlobWriter {
 public:
  /// Waits for the lock; `waiting` is called each time it looks. Throws cancelled, and bad_input where the folder
  /// cannot be written to.
  BlobWriter(const HubCache& cache, const HubFile& file, const std::stop_token& stop,
             const std::function<void()>& waiting);
  ~BlobWriter();
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;

  /// Bytes that are there.
  uint64_t size() const { return size_; }
  /// Whether another program finished it while this one waited.
  bool done() const { return done_; }
  /// Reads what is there, part by part.
  void read(const std::function<void(std::span<const std::byte>)>& take) const;
  /// Throws bad_input naming the file and the reason, as a full disk.
  void append(std::span<const std::byte> bytes);
  /// Begins anew.
  void clear();
  /// Flushes it to the disk and makes it the blob.
  void finish();

 private:
  [[noreturn]] void fail(const char* step, int error) const;

  std::filesystem::path blob_, part_;
  int lock_ = -1, file_ = -1;
  uint64_t size_ = 0;
  bool done_ = false;
};

/// A variant that is in the cache, whole.
struct CachedVariant {
  HubVariant variant;
  std::filesystem::path path;  // to be opened
  bool head = false;           // one of HubVariants::heads
};

/// What is there of a repository, of all its snapshots, as what was fetched on different days may be in different ones;
/// of the same variant that of main, else the newest. Empty where nothing is.
std::vector<CachedVariant> cached_variants(const std::filesystem::path& cache, const std::string& repo);

/// The path of a model by its name in the cache. Throws bad_input, with the command that fetches it, where it is not
/// there, and with what is there where several are meant.
std::filesystem::path find_in_hub_cache(const std::filesystem::path& cache, const HubName& name);

}  // namespace canopy
