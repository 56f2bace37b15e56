#include "engine/session/speculation_state.h"

#include <utility>

namespace canopy {
namespace {

Roofline bare_roofline(const Model& target, const DevicePeak& peak) {
  return {model_shape(target), {peak.fma_gflop_s * 1e9, peak.read_gb_s * 1e9}};
}

/// The paper's policies choose by their own objective and correct nothing but what the paper corrects.
ControllerOptions controller_options(CostPolicy policy) {
  ControllerOptions options;
  options.correct = false;  // an ObservedCost corrects itself
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
  shape.kv_bytes = model.limits().cache_type == CacheType::f16 ? 2 : 4;
  shape.activation_bytes = sizeof(float);
  return shape;
}

SpeculationState::SpeculationState(const Model& target, const Drafter& drafter, const DevicePeak& peak, CostTable table)
    : roofline_(bare_roofline(target, peak)), table_(std::move(table)), block_size_(drafter.config().block_size) {
  table_.set_roofline(roofline_);
  start();
}

void SpeculationState::use(CostPolicy policy) {
  if (policy == policy_) return;
  policy_ = policy;
  start();
}

void SpeculationState::set_table(CostTable table) {
  table_ = std::move(table);
  table_.set_roofline(roofline_);
  start();
}

void SpeculationState::start() {
  cost_ = make_cost(policy_, roofline_, table_);
  controller_ = std::make_unique<Controller>(controller_options(policy_), block_size_);
}

}  // namespace canopy
