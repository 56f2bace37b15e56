#include "engine/model/recurrent_memory.h"

#include <bit>
#include <string>

#include "engine/base/checked.h"
#include "engine/base/error.h"
#include "engine/model/delta_walk.h"

namespace canopy {

DeltaShape delta_shape(const ModelConfig& config) {
  const DeltaNetConfig& net = config.delta_net;
  return {net.key_heads, net.value_heads, net.key_dim, net.value_dim, net.taps, net.tiled};
}

uint64_t kept_state_bytes(const ModelConfig& config, const ModelLimits& limits) {
  if (limits.states == 0) return 0;
  const DeltaShape shape = delta_shape(config);
  const uint64_t state = word_bytes(shape.state_elements() + shape.tail_elements());
  return checked_mul(checked_mul(state, uint64_t{config.recurrent_layers()}, "size of the states"),
                     uint64_t{limits.states}, "size of the states");
}

uint64_t recurrent_working_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device) {
  if (limits.states == 0) return 0;
  const DeltaShape shape = delta_shape(config);
  const uint64_t rows = limits.rows();
  // The inputs of all layers, those that are prepared, gates and results; states put aside; the list of steps.
  const uint64_t of_row = (uint64_t{config.recurrent_layers()} + 1) * shape.row_elements() + 2 * shape.values();
  const uint64_t words =
      checked_mul(rows, of_row, "size of recurrent inputs") + most_spare_states(limits.rows()) * shape.state_elements();
  return word_bytes(words) + device.activation_bytes(limits.rows(), shape.values()) +
         RecurrentMemory::kMaxRows * sizeof(DeltaStep);
}

RecurrentMemory::RecurrentMemory(Device& device, const ModelConfig& config, const ModelLimits& limits)
    : device_(device), shape_(delta_shape(config)), rows_(limits.rows()), index_(config.layers, UINT32_MAX) {
  const auto floats = [&](uint64_t count, const char* name) { return device_.allocate(word_bytes(count), name); };
  const uint64_t rows = rows_, states = limits.states;
  for (uint32_t n = 0; n < config.layers; ++n) {
    if (!config.is_recurrent(n)) continue;
    index_[n] = static_cast<uint32_t>(layers_.size());
    layers_.push_back({floats(rows * shape_.row_elements(), "recurrent inputs"),
                       floats(states * shape_.state_elements(), "recurrent states"),
                       floats(states * shape_.tail_elements(), "inputs before them")});
  }
  prepared_ = floats(rows * shape_.row_elements(), "prepared recurrent inputs");
  spare_ = floats(most_spare_states(rows_) * shape_.state_elements(), "states put aside");
  gate_ = floats(rows * shape_.values(), "recurrent gates");
  read_ = floats(rows * shape_.values(), "what states were read for");
  normed_ = device_.allocate_activations(rows_, shape_.values(), "normed recurrence");
  steps_ = device_.allocate_exchanged(kMaxRows * sizeof(DeltaStep), HostUse::writes, "steps to apply");
}

Commands& RecurrentMemory::commands_for(const Weights& weights, uint32_t steps) {
  std::unique_ptr<Commands>& commands = commands_.at(static_cast<size_t>(std::countr_zero(steps)));
  if (commands) return *commands;
  Recorder record;
  for (uint32_t n = 0; n < index_.size(); ++n) {
    if (index_[n] != UINT32_MAX) record_recurrence(record, *this, weights.layers[n], n, steps, *steps_, false);
  }
  commands = device_.compile(record.finish());
  return *commands;
}

void RecurrentMemory::apply(const Weights& weights, std::span<const uint32_t> rows, const StateUse& use) {
  if (rows.empty() || rows.size() > kMaxRows) {
    throw bad_input(std::to_string(rows.size()) + " rows were to be applied to the states; allowed: 1 to " +
                    std::to_string(kMaxRows) + ".");
  }
  std::vector<DeltaStep> steps = delta_line(rows, use);
  steps.resize(std::bit_ceil(steps.size()));
  Commands& commands = commands_for(weights, static_cast<uint32_t>(steps.size()));
  device_.finish();  // commands that were started may read the list
  device_.write(*steps_, 0, as_bytes_of(steps));
  device_.run(commands);
}

std::vector<float> RecurrentMemory::read_state(uint32_t layer, uint32_t place) const {
  const RecurrentLayer& kept = this->layer(layer);
  std::vector<float> values(shape_.state_elements() + shape_.tail_elements());
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
  const uint64_t state = word_bytes(shape_.state_elements()), tail = word_bytes(shape_.tail_elements());
  const BufferRead reads[] = {{kept.states.get(), place * state, bytes.first(state)},
                              {kept.tails.get(), place * tail, bytes.last(tail)}};
  device_.read_all(reads);
  return values;
}

void record_recurrence(Recorder& record, const RecurrentMemory& memory, const LayerWeights& weights, uint32_t layer,
                       uint32_t width, const Buffer& steps, bool reads) {
  const RecurrentLayer& kept = memory.layer(layer);
  record(DeltaInputsArgs{.width = width,
                         .rows = memory.rows(),
                         .in = kept.inputs.get(),
                         .steps = &steps,
                         .shape = memory.shape(),
                         .taps = weights.taps.get(),
                         .bias = weights.decay_bias.get(),
                         .rate = weights.decay_rate.get(),
                         .tails = kept.tails.get(),
                         .out = &memory.prepared()});
  record(DeltaNetArgs{.width = width,
                      .rows = memory.rows(),
                      .in = &memory.prepared(),
                      .steps = &steps,
                      .shape = memory.shape(),
                      .states = kept.states.get(),
                      .spare = &memory.spare(),
                      .out = reads ? &memory.read() : nullptr});
}

}  // namespace canopy
