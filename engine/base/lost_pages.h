#pragma once
// Pages of a mapped file that cannot be read: the file was shrunk, its disk failed, its network drive is gone. The
// system says so by a signal, SIGBUS, in the middle of whatever instruction touched the page; unhandled, it ends the
// process.

#include <cstddef>
#include <span>

namespace canopy {

/// While it lives, reading a lost page of `mapping` (whole pages, mapped read-only) gives zeros, and lost() says so
/// ever after. Whoever reads the mapping asks lost() before it believes what it read.
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
