#pragma once
// The weights of a DFlash drafter on a device. The embedding is the target's and is not here, and neither is the head
// where it is the target's whole one.

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
  std::vector<MatrixPlan> head;   // [n, H] over draft_token_ids, the drafter's own or rows of the target's; else empty
  uint64_t file_bytes = 0;        // of the matrices
  uint64_t device_bytes = 0;      // matrices and norms
};

/// Where the rows of a head that is not the drafter's own come from.
struct HeadSource {
  const ModelFile* file = nullptr;    // of the target
  WeightType type = WeightType::f32;  // of its head on the device
};

/// Throws bad_input where a tensor is missing, has another shape or cannot be decoded, and where the head is rows of
/// the target's and there is no file of it.
DrafterPlan plan_drafter(const DrafterFile& file, const Device& device, const HeadSource& target);

struct DrafterWeights {
  std::unique_ptr<Weight> fc;           // [H, aux layers * H]
  std::unique_ptr<Buffer> hidden_norm;  // [H]
  Weights body;                         // layers, output_norm and, where the plan has one, head; no embedding
};

/// Throws what load_weights() throws.
DrafterWeights load_drafter_weights(const DrafterFile& file, const DrafterPlan& plan, Device& device,
                                    const LoadCallbacks& callbacks);

}  // namespace canopy
