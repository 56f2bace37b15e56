#pragma once
// The weights of a DFlash drafter on a device. Embedding and head are the target's and are not here.

#include <memory>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/drafter_file.h"
#include "engine/model/load_monitor.h"
#include "engine/model/weight_plan.h"
#include "engine/model/weights.h"

namespace canopy {

struct DrafterPlan {
  MatrixPlan fc;                  // [H, aux layers * H]
  std::vector<LayerPlan> layers;  // qkv: q, then k and v, stacked where their types agree: features need no q
  uint64_t file_bytes = 0;        // of the matrices
  uint64_t device_bytes = 0;      // matrices and norms
};

/// Throws bad_input where a tensor is missing, has another shape or cannot be decoded.
DrafterPlan plan_drafter(const DrafterFile& file, const Device& device);

struct DrafterWeights {
  std::unique_ptr<Weight> fc;           // [H, aux layers * H]
  std::unique_ptr<Buffer> hidden_norm;  // [H]
  Weights body;                         // layers and output_norm; no embedding and no head
};

/// Throws what load_weights() throws.
DrafterWeights load_drafter_weights(const DrafterFile& file, const DrafterPlan& plan, Device& device,
                                    const LoadCallbacks& callbacks);

}  // namespace canopy
