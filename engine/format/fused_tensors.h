#pragma once
// Matrices that a file holds as one, below each other, and the engine knows as several: Phi-3's q, k and v, gate and
// up; a layer's experts in GGUF.

#include <span>
#include <string>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/tensor_view.h"

namespace canopy {

struct FusedTensor {
  std::string name;                   // canonical; it may be that of a part
  std::vector<RequiredTensor> parts;  // from the first row on
  bool stacked = false;               // the parts have one shape and are the tensor's first dimension of three
};

/// Those of a model of this configuration; none where its architecture has none.
std::vector<FusedTensor> fused_tensors(const ModelConfig& config);

/// What a GGUF file has of the experts, one tensor for those of a layer: "blk.3.ffn_up_exps" of "blk.3.ffn_up.0", ...
std::vector<FusedTensor> stacked_experts(const ModelConfig& config);

/// The tensors with views of the rows of each part in the place of what is fused. Throws bad_input, naming the tensor,
/// where one is missing or has another shape than its parts together.
std::vector<TensorView> with_parts(std::span<const TensorView> tensors, std::span<const FusedTensor> fused);

}  // namespace canopy
