#include "engine/planning/speculation_state.h"

#include <utility>

namespace canopy {

ControllerOptions controller_options(CostPolicy policy) {
  ControllerOptions options;
  if (policy != CostPolicy::measured) {
    options.objective = WidthObjective::per_round;
    options.calibrate = false;
  }
  return options;
}

SpeculationState::SpeculationState(PairFacts pair, CostTable table)
    : pair_(std::move(pair)), table_(std::move(table)), controller_(controller_options(policy_), pair_.block_size) {}

const Roofline& SpeculationState::roofline() {
  if (!roofline_) roofline_ = pair_.roofline();
  return *roofline_;
}

void SpeculationState::use(CostPolicy policy) {
  started_ = true;
  if (policy == policy_) return;
  policy_ = policy;
  cost_.reset();
  controller_ = Controller(controller_options(policy_), pair_.block_size);
}

ObservedCost& SpeculationState::cost() {
  if (cost_ == nullptr) price();
  return *cost_;
}

void SpeculationState::replace(CostTable table) {
  table_ = std::move(table);
  shared_table_.reset();
  if (cost_ != nullptr) price();
}

std::shared_ptr<const CostTable> SpeculationState::shared_table() const {
  if (shared_table_ == nullptr) shared_table_ = std::make_shared<const CostTable>(table_);
  return shared_table_;
}

void SpeculationState::archive(StateArchive& archive) {
  archive.flag(started_);
  controller_.archive(archive);
  bool priced = is_priced();
  archive.flag(priced);
  if (priced) cost().archive(archive);
}

double SpeculationState::ar_tokens_per_second(uint32_t context) const {
  return table_.verify_points().empty() ? 0 : 1000 / table_.ar_ms(context);
}

void SpeculationState::price() {
  table_.set_roofline(roofline());
  cost_ = make_cost(policy_, roofline(), table_);
}

}  // namespace canopy
