#pragma once
// Lets the pages of a mapped tensor leave memory once they have been used: they would count twice, beside the device's
// copy.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/mapped_file.h"

namespace canopy {

/// Counts what is used and releases chunks of it as a whole: each release interrupts all cores. Rows that are used in
/// order leave a chunk or two in memory, or a few where many threads take them in turn.
class PageRelease {
 public:
  static constexpr uint64_t kChunk = 4ull << 20;

  explicit PageRelease(std::span<const std::byte> tensor)
      : tensor_(tensor), left_((tensor.size() + kChunk - 1) / kChunk) {
    for (size_t i = 0; i < left_.size(); ++i) left_[i] = std::min<uint64_t>(kChunk, tensor.size() - i * kChunk);
  }
  PageRelease(const PageRelease&) = delete;
  PageRelease& operator=(const PageRelease&) = delete;
  ~PageRelease() { MappedFile::forget(tensor_); }

  /// `rows` of the tensor are not needed any more. Called by any thread, once for each row.
  void used(std::span<const std::byte> rows) {
    auto begin = static_cast<uint64_t>(rows.data() - tensor_.data());
    const uint64_t end = begin + rows.size();
    while (begin < end) {
      const uint64_t chunk = begin / kChunk, stop = std::min(end, (chunk + 1) * kChunk);
      if (left_[chunk].fetch_sub(stop - begin) == stop - begin) {
        MappedFile::forget(
            tensor_.subspan(chunk * kChunk, std::min<uint64_t>(kChunk, tensor_.size() - chunk * kChunk)));
      }
      begin = stop;
    }
  }

 private:
  std::span<const std::byte> tensor_;
  std::vector<std::atomic<uint64_t>> left_;  // bytes of each chunk that are not used yet
};

}  // namespace canopy
