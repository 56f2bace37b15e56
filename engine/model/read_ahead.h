#pragma once
// Has the system read a file's weights before they are asked for, so that the disk works while weights are repacked.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "engine/base/mapped_file.h"
#include "engine/model/weight_plan.h"

namespace canopy {

/// Parts of mapped files in the order in which loading the matrices reads them: rows of a paired matrix come from both
/// of its parts in turn. Without matrices that are rows chosen from a tensor.
std::vector<std::span<const std::byte>> in_reading_order(std::span<const MatrixPlan* const> matrices);

class ReadAhead {
 public:
  /// Bytes that are asked for before they are needed.
  static constexpr uint64_t kWindow = 64ull << 20;

  /// Has a part of a mapped file read, without waiting for it; called by the thread of this.
  using Ask = std::function<void(std::span<const std::byte> part)>;

  /// Asks for the first window. The mappings must outlive it.
  explicit ReadAhead(std::vector<std::span<const std::byte>> parts, Ask ask = MappedFile::prefetch);

  /// Counts bytes that are being read; called by any thread.
  void advance(uint64_t bytes);

 private:
  void run(const std::stop_token& stop);

  const std::vector<std::span<const std::byte>> parts_;
  const Ask ask_;
  std::mutex mutex_;
  std::condition_variable_any read_on_;
  uint64_t read_ = 0;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace canopy
