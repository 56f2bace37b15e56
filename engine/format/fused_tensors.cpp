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

TensorView shape_of(const FusedTensor& fused) {
  const RequiredTensor& part = fused.parts.front();
  TensorView expected;
  expected.rank = fused.is_vector ? 1 : fused.stacked != 0 ? 3 : 2;
  expected.shape = {rows_of_parts(fused)};
  if (!fused.is_vector) expected.shape[1] = part.cols;
  if (fused.stacked != 0) expected.shape = {fused.stacked, rows_of_parts(fused) / fused.stacked, part.cols};
  return expected;
}

void append_parts(const TensorView& tensor, const FusedTensor& fused, std::vector<TensorView>& result) {
  const TensorView expected = shape_of(fused);
  if (tensor.rank != expected.rank || tensor.shape != expected.shape) {
    throw bad_input("The tensor " + quoted_name(tensor.shown_name()) + " has the shape " + tensor.shape_text() + "; " +
                    expected.shape_text() + " is expected.");
  }
  const uint64_t all = rows_of_parts(fused);
  uint64_t first = 0;
  for (const RequiredTensor& part : fused.parts) {
    TensorView view = tensor;
    view.name = part.name;
    view.rank = fused.is_vector ? 1 : 2;
    view.shape = {part.rows};
    if (!fused.is_vector) view.shape[1] = part.cols;
    // Of a packed matrix a share, which may lie elsewhere: its rows are made of all bytes.
    const uint64_t begin = tensor.bytes.size() * first / all, end = tensor.bytes.size() * (first + part.rows) / all;
    view.bytes = tensor.bytes.subspan(begin, end - begin);
    if (tensor.packed) view.packed = packed_rows(tensor.packed, first);
    first += part.rows;
    result.push_back(std::move(view));
  }
}

}  // namespace

std::vector<FusedTensor> fused_tensors(const ModelConfig& c, const std::function<bool(const std::string& name)>& has) {
  std::vector<FusedTensor> result;
  const bool always = architecture_by_name(c.architecture).has_fused_tensors;
  for (uint32_t n = 0; n < c.layers; ++n) {
    const std::string layer = "blk." + std::to_string(n) + ".";
    if (c.is_recurrent(n)) continue;  // whose matrix of that name is one
    const uint64_t queries = uint64_t{c.q_width_of(n)} * (c.has_output_gate ? 2 : 1), keys = c.kv_width_of(n);
    if (always || has(layer + "attn_qkv")) {
      result.push_back({layer + "attn_qkv",
                        {{layer + "attn_q", queries, c.hidden},
                         {layer + "attn_k", keys, c.hidden},
                         {layer + "attn_v", keys, c.hidden}}});
    }
    if (has(layer + "attn_qkv.bias")) {
      result.push_back(
          {layer + "attn_qkv.bias",
           {{layer + "attn_q.bias", queries, 1}, {layer + "attn_k.bias", keys, 1}, {layer + "attn_v.bias", keys, 1}},
           true});
    }
    if (!always) continue;
    const uint32_t ffn = c.ffn_of(n);
    result.push_back({layer + "ffn_up", {{layer + "ffn_gate", ffn, c.hidden}, {layer + "ffn_up", ffn, c.hidden}}});
  }
  return result;
}

std::vector<FusedTensor> stacked_experts(const ModelConfig& c, bool must_have,
                                         const std::function<bool(const std::string& name)>& has) {
  std::vector<FusedTensor> result;
  for (uint32_t n = 0; n < c.layers; ++n) {
    if (!c.layer_has_experts(n)) continue;
    const std::string layer = "blk." + std::to_string(n) + ".";
    const auto add = [&](const std::string& name, const std::vector<std::string>& of_expert, uint64_t rows,
                         uint64_t cols) {
      if (!must_have && !has(layer + name)) return;
      FusedTensor& fused = result.emplace_back(FusedTensor{layer + name, {}, false, c.experts});
      for (uint32_t e = 0; e < c.experts; ++e) {
        for (const std::string& part : of_expert) {
          fused.parts.push_back({layer + part + "." + std::to_string(e), rows, cols});
        }
      }
    };
    if (has(layer + "ffn_gate_up_exps")) {
      add("ffn_gate_up_exps", {"ffn_gate", "ffn_up"}, c.expert_ffn, c.hidden);
    } else {
      add("ffn_gate_exps", {"ffn_gate"}, c.expert_ffn, c.hidden);
      add("ffn_up_exps", {"ffn_up"}, c.expert_ffn, c.hidden);
    }
    add("ffn_down_exps", {"ffn_down"}, c.hidden, c.expert_ffn);
  }
  return result;
}

std::vector<TensorView> with_parts(std::span<const TensorView> tensors, std::span<const FusedTensor> fused,
                                   const std::function<std::string(const std::string& name)>& shown) {
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
    throw bad_input("The tensor " + quoted_name(shown ? shown(one.name) : one.name) +
                    " is missing; its shape should be " + shape_of(one).shape_text() + ".");
  }
  return result;
}

}  // namespace canopy
