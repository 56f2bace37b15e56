#pragma once
// Layers with fewer heads than others, beside the same with all of them: in GGUF files of f32.

#include <algorithm>
#include <string>

#include "tests/format/gguf_builder.h"

namespace canopy::test {

/// Rows [first, first + count) of a matrix of f32.
inline std::string rows_of(const GgufBuilder::Tensor& tensor, uint64_t first, uint64_t count) {
  const size_t row = tensor.dimensions[0] * sizeof(float);
  return tensor.data.substr(first * row, count * row);
}

inline bool is_of_heads(const GgufBuilder::Tensor& tensor, const std::string& layer) {
  return tensor.name == layer + "attn_q.weight" || tensor.name == layer + "attn_k.weight" ||
         tensor.name == layer + "attn_v.weight";
}

/// The second half of the heads of a layer ("blk.1.") becomes 0, so that it changes nothing.
inline void make_heads_idle(GgufBuilder& b, const std::string& layer) {
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (is_of_heads(tensor, layer)) {
      std::fill(tensor.data.begin() + static_cast<std::ptrdiff_t>(tensor.data.size() / 2), tensor.data.end(), '\0');
    }
    if (tensor.name != layer + "attn_output.weight") continue;
    const size_t bytes = tensor.dimensions[0] * sizeof(float);
    for (uint64_t row = 0; row < tensor.dimensions[1]; ++row) {
      tensor.data.replace(row * bytes + bytes / 2, bytes / 2, bytes / 2, '\0');
    }
  }
}

/// Takes them out.
inline void leave_out_idle_heads(GgufBuilder& b, const std::string& layer) {
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (is_of_heads(tensor, layer)) {
      tensor.data = rows_of(tensor, 0, tensor.dimensions[1] / 2);
      tensor.dimensions[1] /= 2;
    }
    if (tensor.name != layer + "attn_output.weight") continue;
    std::string cut;
    for (uint64_t row = 0; row < tensor.dimensions[1]; ++row) {
      const std::string whole = rows_of(tensor, row, 1);
      cut += whole.substr(0, whole.size() / 2);
    }
    tensor.data = cut;
    tensor.dimensions[0] /= 2;
  }
}

}  // namespace canopy::test
