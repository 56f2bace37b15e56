#pragma once
// A file mapped read-only into memory. All platform-specific code is in the .cpp.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "engine/base/error.h"
#include "engine/base/lost_pages.h"

namespace canopy {

class MappedFile {
 public:
  /// Maps the whole file. Throws bad_input, naming the path and the reason, when it is missing, a directory, not a
  /// regular file, empty or unreadable.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  /// Throws bad_input when the file was shrunk, grown or rewritten in place since it was opened, or when a part of it
  /// could not be read: such a part reads as zeros. Costs one system call. Call it before each large read, to stop
  /// early, and after the last one, to be sure that the data is that of the opened file. A file that was replaced by
  /// renaming another over it is not affected, the mapping keeps the old one.
  void check_unchanged() const;

  /// Runs f, which reads the file, then check_unchanged(). If both throw, the error of check_unchanged() is reported,
  /// since an error of f may only be a consequence of the change.
  template <class F>
  void read_checked(F&& f) const {
    try {
      f(bytes());
    } catch (const Error&) {
      check_unchanged();
      throw;
    }
    check_unchanged();
  }

  /// Has the system read `part` of a mapped file into its memory, without waiting for it. A hint: nothing fails.
  static void prefetch(std::span<const std::byte> part) noexcept;

  /// Releases the memory of the whole pages inside `part` of a mapped file; accessing them again reads them from the
  /// file. Meant for parts that have been copied elsewhere.
  static void forget(std::span<const std::byte> part) noexcept;

 private:
  void close() noexcept;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int descriptor_ = -1;
  int64_t modified_ns_ = 0;
  LostPagesWatch watch_;
};

/// All bytes of a small file. Same errors as MappedFile::open, and one when it is larger than `max_bytes`; an empty
/// file is allowed and gives an empty string.
std::string read_small_file(const std::filesystem::path& path, uint64_t max_bytes);

/// A path for messages: passed through printable().
std::string shown(const std::filesystem::path& path);

}  // namespace canopy
