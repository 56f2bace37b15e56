#include "engine/model/read_ahead.h"

#include <algorithm>
#include <stop_token>
#include <utility>

namespace canopy {
namespace {

constexpr uint64_t kPart = 2ull << 20;

void append_part(std::span<const std::byte> bytes, uint64_t begin, std::vector<std::span<const std::byte>>& parts) {
  if (begin < bytes.size()) parts.push_back(bytes.subspan(begin, std::min<uint64_t>(kPart, bytes.size() - begin)));
}

}  // namespace

std::vector<std::span<const std::byte>> in_reading_order(std::span<const MatrixPlan* const> matrices) {
  std::vector<std::span<const std::byte>> parts;
  for (const MatrixPlan* matrix : matrices) {
    if (!matrix->rows.empty()) continue;                                     // rows from here and there
    const size_t together = matrix->layout == WeightLayout::paired ? 2 : 1;  // tensors whose rows alternate
    for (size_t first = 0; first < matrix->parts.size(); first += together) {
      const auto alternating = std::span(matrix->parts).subspan(first, together);
      uint64_t longest = 0;
      for (const TensorView* tensor : alternating) longest = std::max<uint64_t>(longest, tensor->bytes.size());
      for (uint64_t begin = 0; begin < longest; begin += kPart) {
        for (const TensorView* tensor : alternating) append_part(tensor->bytes, begin, parts);
      }
    }
  }
  return parts;
}

ReadAhead::ReadAhead(std::vector<std::span<const std::byte>> parts, Ask ask)
    : parts_(std::move(parts)), ask_(std::move(ask)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void ReadAhead::advance(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const uint64_t before = std::exchange(read_, read_ + bytes);
  if (before / kPart != read_ / kPart) read_on_.notify_one();
}

void ReadAhead::run(const std::stop_token& stop) {
  uint64_t asked = 0;
  for (const std::span<const std::byte> part : parts_) {
    {
      std::unique_lock lock(mutex_);
      if (!read_on_.wait(lock, stop, [&] { return asked < read_ + kWindow; })) return;
      if (asked + part.size() <= read_) {  // it was read already
        asked += part.size();
        continue;
      }
    }
    ask_(part);
    asked += part.size();
  }
}

}  // namespace canopy
