#pragma once
// Matrices that a file holds as one, below each other, and the engine knows as several: q, k and v of Phi-3, and of
// other models where a converter was told to join them; Phi-3's gate and up; a layer's experts.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/tensor_view.h"

namespace canopy {

struct FusedTensor {
  std::string name;                   // canonical; it may be that of a part
  std::vector<RequiredTensor> parts;  // from the first row on
  bool is_vector = false;             // a bias, whose elements are the rows
  uint64_t stacked = 0;               // the tensor's first dimension of three, of which each has as many parts; 0: two
};

/// Those of a model of this configuration, whose file `has` such tensors: what its architecture always has so, and
/// queries, keys and values where they are joined.
std::vector<FusedTensor> fused_tensors(const ModelConfig& config,
                                       const std::function<bool(const std::string& name)>& has);

/// What a file that `has` such tensors has of the experts, one tensor for those of a layer: "blk.3.ffn_up_exps" of
/// "blk.3.ffn_up.0", ..., or "blk.3.ffn_gate_up_exps" of "blk.3.ffn_gate.0", "blk.3.ffn_up.0", .... GGUF files must
/// have either; folders may have each expert by itself.
std::vector<FusedTensor> stacked_experts(const ModelConfig& config, bool must_have,
                                         const std::function<bool(const std::string& name)>& has);

/// The tensors with views of the rows of each part in the place of what is fused. Throws bad_input, naming the tensor,
/// where one is missing or has another shape than its parts together; `shown` gives the name for messages.
std::vector<TensorView> with_parts(std::span<const TensorView> tensors, std::span<const FusedTensor> fused,
                                   const std::function<std::string(const std::string& name)>& shown = {});

}  // namespace canopy
