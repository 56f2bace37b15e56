#pragma once
// Mapped memory: files that are mapped to be read, pages of them that get lost, and a pattern mapped again and again.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "engine/base/error.h"

namespace canopy {

// Handling of pages of a mapped file that can no longer be read because the file was shrunk, its disk failed or its
// network drive is gone. Touching such a page raises the signal SIGBUS, which ends the process if it is not handled.

/// While this object lives, reading a lost page of `mapping` (whole pages, mapped read-only) gives zeros, and lost()
/// returns true from then on. Check lost() after reading and before using the data.
///
/// The first watch installs a handler for SIGBUS; faults elsewhere go to the handler that was there before.
class LostPagesWatch {
 public:
  LostPagesWatch() = default;
  explicit LostPagesWatch(std::span<const std::byte> mapping);
  LostPagesWatch(LostPagesWatch&& other) noexcept;
  LostPagesWatch& operator=(LostPagesWatch&& other) noexcept;
  LostPagesWatch(const LostPagesWatch&) = delete;
  LostPagesWatch& operator=(const LostPagesWatch&) = delete;
  /// The mapping must still be there.
  ~LostPagesWatch();

  bool lost() const noexcept;

 private:
  int slot_ = -1;
};

/// A file mapped read-only into memory.
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

/// A pattern that repeats through a range of memory without taking more room than once. Read-only: every page of the
/// range is a page of the one pattern.
class RepeatedBytes {
 public:
  RepeatedBytes() = default;
  /// At least `bytes` bytes. Throws bad_input for an empty pattern or one that is no multiple of page(), and
  /// out_of_memory where the system gives no room.
  RepeatedBytes(std::span<const std::byte> pattern, uint64_t bytes);
  RepeatedBytes(RepeatedBytes&& other) noexcept;
  RepeatedBytes& operator=(RepeatedBytes&& other) noexcept;
  RepeatedBytes(const RepeatedBytes&) = delete;
  RepeatedBytes& operator=(const RepeatedBytes&) = delete;
  ~RepeatedBytes();

  /// A whole number of patterns.
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Bytes of a page of memory.
  static uint64_t page();

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace canopy
