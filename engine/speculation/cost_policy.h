#pragma once
// The ways to predict what a pass costs: the three of the BASTION paper, to compare with, and the measured table.

#include <memory>
#include <optional>
#include <string_view>

#include "engine/speculation/cost_table.h"
#include "engine/speculation/state_archive.h"

namespace canopy {

enum class CostPolicy {
  static_roofline,  // "static": the calibrated roofline, which learns nothing; the paper's default
  ema,              // "ema": the bare roofline times one bias; needs no calibration
  ema_calib,        // "ema+calib": the calibrated roofline times one bias
  measured,         // "measured": the table times a residual by width; ours, the default
  paper,            // "paper": costs as "static", the width by the paper's stop rule (paper_rule.h)
};

std::string_view to_string(CostPolicy policy);
/// By the names above; nothing for another.
std::optional<CostPolicy> cost_policy_of(std::string_view name);

/// A cost that is told what passes really took. What is no time (zero, negative, not a number) is passed over.
class ObservedCost : public PassCost {
 public:
  virtual void observe_verify(uint32_t width, uint32_t context, double ms) = 0;
  virtual void observe_draft(uint32_t backlog, uint32_t context, double ms) = 0;
  virtual void observe_other(uint32_t width, double ms) = 0;

  /// The table corrected by the times observed since, to be saved; nothing where they do not change it.
  virtual std::optional<CostTable> refreshed_table() const { return std::nullopt; }

  /// What was observed. One that reads must have been made of the same policy, roofline and table.
  virtual void archive(StateArchive& archive) = 0;
};

struct CostPolicySettings {
  double alpha = 0.1;  // weight of the newest observation in the paper's bias, 0 to 1
};

/// bare   the roofline of model and device, uncalibrated
/// table  what was measured, possibly nothing: then the roofline stands in everywhere
/// Draft times and the rest of a round come from the table in every policy, with what is observed of them (the paper
/// takes measured constants). Throws Error(bad_input) for an alpha out of range.
std::unique_ptr<ObservedCost> make_cost(CostPolicy policy, const Roofline& bare, const CostTable& table,
                                        const CostPolicySettings& settings = {});

}  // namespace canopy
