#pragma once
// The forward passes: one function per architecture, which records the ops of a pass of a given width.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/compute/device.h"
#include "engine/format/model_config.h"
#include "engine/model/memory_plan.h"
#include "engine/model/pass_buffers.h"
#include "engine/model/weights.h"

namespace canopy {

/// What is computed after the last layer.
enum class HeadOutput {
  none,    // only K/V (and taps): all of a prompt but its end
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
  uint32_t picks = 0;          // tokens whose logits are picked, rounded up
  bool taps = false;
  bool head_only = false;  // of rows whose pass was before: width is that pass's
  auto operator<=>(const PassShape&) const = default;
};

/// What the rows of a layer see of their sequence (AttentionArgs).
struct LayerAttention {
  AttentionMask mask = AttentionMask::causal;
  uint32_t window = 0;  // positions; 0: no limit
};

/// What a pass is recorded over. References must outlive the recording's commands.
struct ForwardContext {
  const ModelConfig& config;
  const Weights& weights;   // of the layers and the norms
  const Weight& embedding;  // [V, H], not always the weights' own: a drafter borrows its target's
  const Weight& head;       // [V, H], likewise
  const PassBuffers& buffers;
  std::span<const std::unique_ptr<KvLayer>> cache;  // by layer
  KvShape kv;
  std::span<const uint32_t> tap_layers;
  float embedding_scale = 1;
  std::span<const LayerAttention> attention = {};  // by layer; empty: causal and without a window, all of them
};

using RecordForward = void (*)(Recorder& record, const ForwardContext& model, const PassShape& pass);

void record_llama(Recorder& record, const ForwardContext& model, const PassShape& pass);
void record_qwen3(Recorder& record, const ForwardContext& model, const PassShape& pass);

/// Throws bad_input, naming what is supported, for an architecture without a forward pass.
RecordForward forward_of(std::string_view architecture);

}  // namespace canopy
