#include "engine/whatif/what_if_state.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/trace/state_bytes.h"

namespace canopy {
namespace {

/// For passes beyond the measured ones where no roofline was recorded: how times grow with rows and positions.
Roofline some_roofline() {
  const ModelShape shape{
      .layers = 30, .hidden = 576, .query_heads = 9, .kv_heads = 3, .head_dim = 64, .ffn = 1536, .vocab = 49152};
  return Roofline(shape, {.flops_per_second = 1e12, .bytes_per_second = 1e11});
}

/// Whether anything is to be other than it was recorded.
bool differs(const WhatIfWish& wish) {
  return wish.mode || wish.policy || wish.budget || wish.widest != UINT32_MAX || wish.deepest != UINT32_MAX;
}

bool predicts(const RecordedReply& reply, const WhatIfWish& wish) {
  return wish.mode.value_or(reply.mode) == DecodeMode::adaptive;
}

[[noreturn]] void refuse_without_costs() {
  throw bad_input(
      "What passes cost was not recorded, so the recording cannot be re-run with its own costs; give those of a device "
      "(its name or a calibration).");
}

}  // namespace

WhatIfState::WhatIfState(std::span<const RecordedReply> replies, const WhatIfWish& wish) {
  const RecordedReply& first = replies.front();
  if (wish.costs) {
    own_times_ = wish.costs->times;
    take(wish.costs->table, first);
  } else if (differs(wish)) {
    const std::unique_ptr<SpeculationState> then = restored(first);
    if (then == nullptr || then->table().verify_points().empty()) refuse_without_costs();
    take(then->refreshed_table().value_or(then->table()), first);
  } else {
    for (const RecordedReply& reply : replies) {
      if (predicts(reply, wish) && (!reply.knows_drafting || !reply.drafting.priced)) refuse_without_costs();
    }
  }
}

/// Rounds take what the table says, beyond its edges as the choice of widths believes.
void WhatIfState::take(CostTable table, const RecordedReply& first) {
  if (own_times_ == nullptr) {
    clock_ = table;
    clock_->set_roofline(calibrated_roofline(first.drafting.roofline.value_or(some_roofline()), table));
  }
  table_ = std::move(table);
  times_ = own_times_ != nullptr ? own_times_.get() : &*clock_;
}

std::unique_ptr<SpeculationState> WhatIfState::make(const RecordedReply& reply, CostTable table) const {
  PairFacts pair;
  pair.block_size = std::max(2u, reply.drafting.block);
  pair.roofline = [&reply] { return reply.drafting.roofline.value_or(some_roofline()); };
  pair.recordings = [this] { return prepared_; };
  return std::make_unique<SpeculationState>(std::move(pair), std::move(table));
}

std::unique_ptr<SpeculationState> WhatIfState::restored(const RecordedReply& reply) const {
  if (!reply.knows_drafting) return nullptr;
  const TraceDrafting& drafting = reply.drafting;
  if (drafting.rules != controller_rules) {
    throw bad_input("The recording was made by rules number " + std::to_string(drafting.rules) +
                    " for the choice of a tree; this version of Canopy follows number " +
                    std::to_string(controller_rules) + ".");
  }
  auto state = make(reply, drafting.costs != nullptr ? *drafting.costs : CostTable());
  const std::optional<CostPolicy> policy = cost_policy_of(drafting.policy);
  if (!policy) throw bad_input("The recording names the policy '" + drafting.policy + "', which is not known.");
  state->use(*policy);
  Reader bytes(std::as_bytes(std::span(drafting.state)));
  StateReader reader(bytes);
  state->archive(reader);
  return state;
}

SpeculationState& WhatIfState::before(const RecordedReply& reply, DecodeMode mode, CostPolicy policy) {
  if (!table_) {
    state_ = restored(reply);
    if (state_ == nullptr) state_ = make(reply, CostTable());
  } else if (state_ == nullptr) {
    state_ = make(reply, *table_);
    const std::unique_ptr<SpeculationState> then = restored(reply);
    const auto same_rules = [&](CostPolicy other) {
      const ControllerOptions a = controller_options(policy), b = controller_options(other);
      return a.objective == b.objective && a.calibrate == b.calibrate;
    };
    state_->use(policy);
    if (then != nullptr && same_rules(then->policy())) {
      state_->controller() = then->controller();
      state_->controller().forget_times();
    }
  }
  state_->use(mode == DecodeMode::adaptive ? policy : state_->policy());
  return *state_;
}

}  // namespace canopy
