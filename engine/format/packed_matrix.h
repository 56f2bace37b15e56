#pragma once
// Matrices that a file holds in a form that no block type has, such as codes in one tensor and their scales in another.
// Their TensorView has the type that rows are made in, and the tensor of the codes as its bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/format/tensor_view.h"

namespace canopy {

class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;

  /// Writes rows [first, first + count) as blocks of the tensor's type, row-major; `out` is exactly their bytes.
  /// Threads may make rows of one matrix at the same time. Throws bad_input, naming the tensor, where the file
  /// contradicts what its configuration says.
  virtual void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const = 0;

  /// What the file holds, for people: "FP8", "GPTQ with columns in an order of their own"; empty where that is the
  /// tensor's type in another order.
  virtual std::string_view form() const = 0;

 protected:
  PackedMatrix() = default;
};

/// A matrix of the rows from `first` on.
std::shared_ptr<const PackedMatrix> packed_rows(std::shared_ptr<const PackedMatrix> whole, uint64_t first);

/// Bytes of a row in the tensor's type.
uint64_t row_bytes(const TensorView& tensor);

/// Rows [first, first + count) as blocks of the tensor's type: where they lie in the file, or made in `scratch`. Throws
/// what make_rows() throws.
std::span<const std::byte> rows_of(const TensorView& tensor, uint64_t first, uint64_t count,
                                   std::vector<std::byte>& scratch);

}  // namespace canopy
