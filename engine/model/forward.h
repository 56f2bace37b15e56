#pragma once
// The forward pass: records the ops of a pass of a given width, layer by layer as the model's LayerSpecs say. Targets
// of all architectures and drafters go through it.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/layer_spec.h"
#include "engine/format/model_config.h"
#include "engine/model/kv_caches.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/pass_shape.h"
#include "engine/model/recurrent_memory.h"
#include "engine/model/weights.h"

namespace canopy {

/// The model, buffers and caches that a pass is recorded over. References must outlive the recording's commands.
struct ForwardContext {
  const ModelConfig& config;
  std::span<const LayerSpec> layers;  // what each computes
  const Weights& weights;             // of the layers and the norms
  const Weight& embedding;            // [V, H], not always the weights' own: a drafter borrows its target's
  const Weight& head;                 // [V, H], likewise
  const PassBuffers& buffers;
  const PassParts& parts;  // of this recording
  const KvCaches& cache;
  std::span<const uint32_t> aux_layers;
  float embedding_scale = 1;
  const RecurrentMemory* recurrent = nullptr;  // where some layers are recurrences
};

/// The whole pass; with pass.head_only its head alone, over what the pass before left.
void record_forward(Recorder& record, const ForwardContext& model, const PassShape& pass);

}  // namespace canopy
