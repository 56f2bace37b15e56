#pragma once
// Several arrays in one buffer, so that a pass costs one upload and one read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "engine/compute/types.h"

namespace canopy {

/// Offsets, in bytes, of arrays that follow each other, each where a part of a buffer may start (Device::part).
class Packing {
 public:
  /// Where the next array starts; that of an empty one is where the array after it starts.
  uint64_t add(uint64_t bytes) {
    const uint64_t start = (end_ + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    if (bytes > 0) end_ = start + bytes;
    return start;
  }
  uint64_t end() const { return end_; }

 private:
  uint64_t end_ = 0;
};

/// Copies an array to its place in what is uploaded, which grows as far as it needs.
template <class T>
void put(std::vector<std::byte>& packed, uint64_t offset, const std::vector<T>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  packed.resize(std::max<size_t>(packed.size(), offset + bytes.size()));
  std::ranges::copy(bytes, packed.begin() + static_cast<std::ptrdiff_t>(offset));
}

/// The same of `count` elements that are made one by one: at(i).
template <class At>
void put_each(std::vector<std::byte>& packed, uint64_t offset, size_t count, const At& at) {
  using T = decltype(at(size_t{0}));
  packed.resize(std::max<size_t>(packed.size(), offset + count * sizeof(T)));
  for (size_t i = 0; i < count; ++i) {
    const T value = at(i);
    std::memcpy(packed.data() + offset + i * sizeof(T), &value, sizeof(T));
  }
}

/// Element i of an array in what was read, which must hold it.
template <class T>
T element_at(std::span<const std::byte> packed, uint64_t offset, size_t i) {
  T value;
  std::memcpy(&value, packed.data() + offset + i * sizeof(T), sizeof(T));
  return value;
}

/// An array of `count` elements out of what was read, all of which it must hold.
template <class T>
std::vector<T> array_at(std::span<const std::byte> packed, uint64_t offset, size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), packed.data() + offset, count * sizeof(T));
  return values;
}

}  // namespace canopy
