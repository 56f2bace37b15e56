#pragma once
// A tensor where it lies in a mapped file.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/format/tensor_type.h"

namespace canopy {

class PackedMatrix;

/// Row-major: the last dimension is contiguous (GGUF lists it first; we do not).
struct TensorView {
  static constexpr uint32_t max_rank = 4;

  std::string name;
  std::string stored_as = {};  // its name in the file, where messages are to use that; else empty
  TensorType type = TensorType::f32;
  uint32_t rank = 0;                          // 0 is a scalar
  std::array<uint64_t, max_rank> shape = {};  // the first `rank` entries, outermost first
  std::span<const std::byte> bytes;           // valid while its file is open
  /// Where the bytes are no blocks of `type`: makes rows of it (packed_matrix.h).
  std::shared_ptr<const PackedMatrix> packed = nullptr;

  /// The name for messages.
  const std::string& shown_name() const { return stored_as.empty() ? name : stored_as; }
  /// The last dimension; 1 for a scalar.
  uint64_t cols() const { return rank == 0 ? 1 : shape[rank - 1]; }
  /// Product of all dimensions but the last; 1 for a vector. Its overflow was excluded when the file was read.
  uint64_t rows() const;
  uint64_t elements() const { return rows() * cols(); }
  /// "[576, 1536]"
  std::string shape_text() const;
};

}  // namespace canopy
