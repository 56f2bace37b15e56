#include "engine/session/speculation_state.h"

#include <utility>

#include "engine/base/error.h"
#include "engine/compute/kv_slots.h"

namespace canopy {
namespace {

/// A device that cannot be measured gets the numbers of a small CPU: what rounds really take corrects them.
DevicePeak peak_of(Device& device) {
  try {
    return device.measure_peak();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unavailable) throw;
    return {.read_gb_s = 10, .fma_gflop_s = 50, .plain_fma_gflop_s = 50};
  }
}

/// The policies of the paper choose by its objective and know no calibration.
ControllerOptions controller_options(CostPolicy policy) {
  ControllerOptions options;
  if (policy != CostPolicy::measured) {
    options.objective = WidthObjective::per_round;
    options.calibrate = false;
  }
  return options;
}

}  // namespace

ModelShape model_shape(const Model& model) {
  const ModelConfig& config = model.config();
  ModelShape shape;
  shape.layers = config.layers;
  shape.hidden = config.hidden;
  shape.query_heads = config.heads;
  shape.kv_heads = config.kv_heads;
  shape.head_dim = config.head_dim;
  shape.ffn = config.ffn;
  shape.vocab = config.vocab;
  shape.weight_bytes = static_cast<double>(model.pass_bytes()) / static_cast<double>(model.weight_elements());
  shape.kv_bytes = mean_element_bytes(kv_shape(config, model.limits()));
  shape.activation_bytes = sizeof(float);
  return shape;
}

SpeculationState::SpeculationState(const Model& target, const Drafter& drafter, CostTable table)
    : target_(target),
      drafter_(drafter),
      table_(std::move(table)),
      controller_(controller_options(policy_), drafter.config().block_size) {}

const Roofline& SpeculationState::roofline() {
  if (!roofline_) {
    const DevicePeak peak = peak_of(target_.device());
    roofline_.emplace(model_shape(target_), DevicePeaks{peak.fma_gflop_s * 1e9, peak.read_gb_s * 1e9});
  }
  return *roofline_;
}

void SpeculationState::use(CostPolicy policy) {
  started_ = true;
  if (policy == policy_) return;
  policy_ = policy;
  cost_.reset();
  controller_ = Controller(controller_options(policy_), drafter_.config().block_size);
}

ObservedCost& SpeculationState::cost() {
  if (cost_ == nullptr) price();
  return *cost_;
}

void SpeculationState::replace(CostTable table) {
  table_ = std::move(table);
  if (cost_ != nullptr) price();
}

double SpeculationState::ar_tokens_per_second(uint32_t context) const {
  return table_.verify_points().empty() ? 0 : 1000 / table_.ar_ms(context);
}

void SpeculationState::price() {
  table_.set_roofline(roofline());
  cost_ = make_cost(policy_, roofline(), table_);
}

}  // namespace canopy
