#pragma once
// What recurrent layers keep and work in on a device: the states of texts, and what a pass leaves of its rows, so that
// those that are accepted can be applied once more.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/compute/delta_net.h"
#include "engine/compute/device.h"
#include "engine/format/model_config.h"
#include "engine/model/memory_plan.h"
#include "engine/model/state_history.h"
#include "engine/model/weights.h"

namespace canopy {

DeltaShape delta_shape(const ModelConfig& config);

/// Bytes of the kept states of all layers, and of all else here.
uint64_t kept_state_bytes(const ModelConfig& config, const ModelLimits& limits);
uint64_t recurrent_working_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device);

/// Memory of one recurrent layer. W is at most limits.rows().
struct RecurrentLayer {
  std::unique_ptr<Buffer> inputs;  // [W, row_elements]: what the layer's products gave; of the last pass
  std::unique_ptr<Buffer> states;  // [limits.states, value_heads, key_dim, value_dim]
  std::unique_ptr<Buffer> tails;   // [limits.states, taps - 1, channels]
};

class RecurrentMemory {
 public:
  RecurrentMemory(Device& device, const ModelConfig& config, const ModelLimits& limits);

  const DeltaShape& shape() const { return shape_; }
  uint32_t rows() const { return rows_; }
  /// Of a layer of the model, which must be recurrent.
  const RecurrentLayer& layer(uint32_t layer) const { return layers_[index_.at(layer)]; }

  // Of the layer at hand.
  Buffer& prepared() const { return *prepared_; }   // [W, row_elements]
  Buffer& spare() const { return *spare_; }         // [most_spare_states(W), value_heads, key_dim, value_dim]
  Buffer& gate() const { return *gate_; }           // [W, values]
  Buffer& read() const { return *read_; }           // [W, values]
  Activations& normed() const { return *normed_; }  // [W, values]

  /// Applies rows of the last pass, each of which follows the one before, to the state use.from of all layers, and puts
  /// the result to use.to. Waits for it. At most kMaxRows.
  void apply(const Weights& weights, std::span<const uint32_t> rows, const StateUse& use);
  static constexpr uint32_t kMaxRows = 4096;  // of the widest pass
  /// Model::read_state().
  std::vector<float> read_state(uint32_t layer, uint32_t place) const;
  /// After Device::fall_back().
  void forget_recordings() { commands_ = {}; }

 private:
  Commands& commands_for(const Weights& weights, uint32_t steps);

  Device& device_;
  DeltaShape shape_;
  uint32_t rows_;
  std::vector<uint32_t> index_;  // by layer of the model: into layers_
  std::vector<RecurrentLayer> layers_;
  std::unique_ptr<Buffer> prepared_, spare_, gate_, read_, steps_;
  std::unique_ptr<Activations> normed_;
  std::array<std::unique_ptr<Commands>, 13> commands_;  // by log2 of the steps
};

/// delta_inputs and delta_net of a layer, over a list of steps. `reads`: their results go to memory.read().
void record_recurrence(Recorder& record, const RecurrentMemory& memory, const LayerWeights& weights, uint32_t layer,
                       uint32_t width, const Buffer& steps, bool reads);

}  // namespace canopy
