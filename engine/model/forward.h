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
#include "engine/model/memory_plan.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/weights.h"

namespace canopy {

/// What is computed after the last layer.
enum class HeadOutput {
  none,    // only K/V (and aux hidden states): all of a prompt but its end
  argmax,  // id and value of each wanted row's largest logit
  logits,  // all logits of each wanted row
};

/// What one recording depends on; all else is read from buffers.
struct PassShape {
  uint32_t width = 0;
  uint32_t max_positions = 0;  // no row has more keys
  HeadOutput head = HeadOutput::none;
  uint32_t head_rows = 0;      // rows the head is computed for
  bool all_rows = false;       // these are all rows, in order
  bool probabilities = false;  // log_sum_exp of these rows
  uint32_t token_logits = 0;   // single logits that are wanted, rounded up
  bool aux_hidden_states = false;
  uint32_t cache = 0;      // which of the model's caches its layers read and write
  bool head_only = false;  // of rows whose pass was before: width is that pass's
  auto operator<=>(const PassShape&) const = default;
};

/// What a pass is recorded over. References must outlive the recording's commands.
struct ForwardContext {
  const ModelConfig& config;
  std::span<const LayerSpec> layers;  // what each computes; require_supported() has passed
  const Weights& weights;             // of the layers and the norms
  const Weight& embedding;            // [V, H], not always the weights' own: a drafter borrows its target's
  const Weight& head;                 // [V, H], likewise
  const PassBuffers& buffers;
  std::span<const std::unique_ptr<KvLayer>> cache;  // by layer
  KvShape kv;
  std::span<const uint32_t> aux_layers;
  float embedding_scale = 1;
};

/// The whole pass; with pass.head_only its head alone, over what the pass before left.
void record_forward(Recorder& record, const ForwardContext& model, const PassShape& pass);

}  // namespace canopy
