#pragma once
// What speculation has learnt about a pair on a device: costs, acceptance, calibration. It outlives replies.

#include <memory>

#include "engine/model/drafter.h"
#include "engine/model/model.h"
#include "engine/speculation/controller.h"
#include "engine/speculation/cost_policy.h"

namespace canopy {

class SpeculationState {
 public:
  /// `table` as it was measured, possibly empty; where it is silent the roofline of the target on `peak` stands in.
  SpeculationState(const Model& target, const Drafter& drafter, const DevicePeak& peak, CostTable table);

  /// Predicts by this policy from now on. What was learnt under another one is forgotten; the table stays.
  void use(CostPolicy policy);
  CostPolicy policy() const { return policy_; }

  Controller& controller() { return *controller_; }
  const Controller& controller() const { return *controller_; }
  ObservedCost& cost() { return *cost_; }
  const CostTable& table() const { return table_; }
  const Roofline& roofline() const { return roofline_; }  // bare

  /// Another calibration, from now on.
  void set_table(CostTable table);

 private:
  void start();

  Roofline roofline_;
  CostTable table_;
  uint32_t block_size_;
  CostPolicy policy_ = CostPolicy::measured;
  std::unique_ptr<ObservedCost> cost_;
  std::unique_ptr<Controller> controller_;
};

/// What decides the cost of the target's passes.
ModelShape model_shape(const Model& model);

}  // namespace canopy
