#include "engine/predict/predicted_costs.h"

#include <algorithm>

namespace canopy::predict {
namespace {

/// Milliseconds of the drafter's pass: features become keys and values, then a block is drafted, in one submission.
double draft_ms(RecordedModel& drafter, const DeviceProfile& device, const KernelRules& rules, const RoundSizes& sizes,
                uint32_t backlog, uint32_t context) {
  double ms = predict_pass(drafter, device, rules, sizes.block, context).ms;
  if (backlog > 0) ms += predict_ops_ms(drafter.record_injection(backlog), device, rules);
  return ms;
}

}  // namespace

CostTable predict_costs(RecordedModel& target, RecordedModel* drafter, const DeviceProfile& device,
                        const KernelRules& rules, const RoundSizes& sizes) {
  CostTable table;
  const uint32_t last = std::max(16u, sizes.context);
  const auto add = [&](uint32_t width, uint32_t context) {
    table.set_verify(width, context, predict_pass(target, device, rules, width, context).ms);
  };
  for (uint32_t width = 1; width <= sizes.rows; ++width) add(width, last / 2);
  for (const uint32_t width : usual_widths()) {
    if (width > sizes.rows) break;
    add(width, 0);
    add(width, last);
  }
  if (drafter == nullptr) return table;
  for (const uint32_t context : {0u, last}) {
    for (uint32_t backlog = 1; backlog < sizes.most_waiting; backlog *= 2) {
      table.set_draft(backlog, context, draft_ms(*drafter, device, rules, sizes, backlog, context));
    }
    table.set_draft(sizes.most_waiting, context, draft_ms(*drafter, device, rules, sizes, sizes.most_waiting, context));
  }
  return table;
}

}  // namespace canopy::predict
