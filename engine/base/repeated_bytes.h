#pragma once
// A pattern that repeats through a range of memory without taking more room than once. All platform-specific code is in
// the .cpp.

#include <cstddef>
#include <cstdint>
#include <span>

namespace canopy {

/// Read-only: every page of the range is a page of the one pattern.
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
