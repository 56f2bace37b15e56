#include "engine/format/fused_tensors.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/packed_matrix.h"

namespace canopy {
namespace {

uint64_t rows_of_parts(const FusedTensor& fused) {
  uint64_t rows = 0;  // of validated sizes
  for (const RequiredTensor& part : fused.parts) rows += part.rows;
  return rows;
}

void append_parts(const TensorView& tensor, const FusedTensor& fused, std::vector<TensorView>& result) {
  const uint64_t all = rows_of_parts(fused), cols = fused.parts.front().cols;
  if (tensor.rank != 2 || tensor.rows() != all || tensor.cols() != cols) {
    throw bad_input("The tensor " + quoted_name(tensor.name) + " has the shape " + tensor.shape_text() + "; [" +
                    std::to_string(all) + ", " + std::to_string(cols) + "] is expected.");
  }
  uint64_t first = 0;
  for (const RequiredTensor& part : fused.parts) {
    TensorView view = tensor;
    view.name = part.name;
    view.shape[0] = part.rows;
    // Of a packed matrix a share, which may lie elsewhere: its rows are made of all bytes.
    const uint64_t begin = tensor.bytes.size() * first / all, end = tensor.bytes.size() * (first + part.rows) / all;
    view.bytes = tensor.bytes.subspan(begin, end - begin);
    if (tensor.packed) view.packed = packed_rows(tensor.packed, first);
    first += part.rows;
    result.push_back(std::move(view));
  }
}

}  // namespace

std::vector<FusedTensor> fused_tensors(const ModelConfig& c) {
  std::vector<FusedTensor> result;
  if (!architecture_by_name(c.architecture).has_fused_tensors) return result;
  for (uint32_t n = 0; n < c.layers; ++n) {
    const std::string layer = "blk." + std::to_string(n) + ".";
    result.push_back({layer + "attn_qkv",
                      {{layer + "attn_q", c.q_width(), c.hidden},
                       {layer + "attn_k", c.kv_width(), c.hidden},
                       {layer + "attn_v", c.kv_width(), c.hidden}}});
    result.push_back({layer + "ffn_up", {{layer + "ffn_gate", c.ffn, c.hidden}, {layer + "ffn_up", c.ffn, c.hidden}}});
  }
  return result;
}

std::vector<TensorView> with_parts(std::span<const TensorView> tensors, std::span<const FusedTensor> fused) {
  std::unordered_map<std::string_view, const FusedTensor*> wanted;
  for (const FusedTensor& one : fused) wanted.emplace(one.name, &one);
  std::vector<TensorView> result;
  for (const TensorView& tensor : tensors) {
    const auto found = wanted.find(tensor.name);
    if (found == wanted.end()) {
      result.push_back(tensor);
      continue;
    }
    append_parts(tensor, *found->second, result);
    wanted.erase(found);
  }
  for (const FusedTensor& one : fused) {
    if (!wanted.contains(one.name)) continue;
    throw bad_input("The tensor " + quoted_name(one.name) + " is missing; its shape should be [" +
                    std::to_string(rows_of_parts(one)) + ", " + std::to_string(one.parts.front().cols) + "].");
  }
  return result;
}

}  // namespace canopy
