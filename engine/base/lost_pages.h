#pragma once
// Handling of pages of a mapped file that can no longer be read because the file was shrunk, its disk failed or its
// network drive is gone. Touching such a page raises the signal SIGBUS, which ends the process if it is not handled.

#include <cstddef>
#include <span>

namespace canopy {

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

}  // namespace canopy
