#include "engine/model/row_conversion.h"

#include <cstring>
#include <string>

#include "engine/base/checked.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/dequantize.h"
#include "engine/format/packed_matrix.h"
#include "engine/format/quantize.h"
#include "engine/model/stored_type.h"

namespace canopy {

bool can_convert_rows(uint64_t cols, WeightType to) {
  return to == WeightType::f32 || (can_quantize(stored_as(to)) && cols % block_size(to).elements == 0);
}

void convert_rows(const TensorView& tensor, uint32_t first, uint32_t count, WeightType to,
                  std::vector<std::byte>& blocks) {
  std::vector<std::byte> scratch;
  convert_rows(tensor, first, rows_of(tensor, first, count, scratch), to, blocks);
}

void convert_rows(const TensorView& tensor, uint32_t first, std::span<const std::byte> rows, WeightType to,
                  std::vector<std::byte>& blocks) {
  const uint64_t file_row = row_bytes(tensor);
  const uint64_t count = rows.size() / file_row;
  const uint64_t row = tensor_bytes(stored_as(to), tensor.cols(), tensor.name);
  std::vector<float> values(tensor.cols());
  blocks.resize(checked_mul(row, count, "size of rows of " + tensor.name));
  for (uint64_t r = 0; r < count; ++r) {
    dequantize(tensor.type, rows.subspan(r * file_row, file_row), values);
    const std::span<std::byte> out = std::span(blocks).subspan(r * row, row);
    if (to == WeightType::f32) {
      std::memcpy(out.data(), values.data(), out.size());
      continue;
    }
    try {
      quantize(stored_as(to), values, out);
    } catch (const Error& e) {
      throw e.within("Row " + std::to_string(uint64_t{first} + r) + " of the tensor " +
                     quoted_name(tensor.shown_name()));
    }
  }
}

}  // namespace canopy
