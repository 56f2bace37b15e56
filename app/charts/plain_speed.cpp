#include "app/charts/plain_speed.h"

namespace canopy::app {

PlainSpeed plain_speed(const RoundLog& log, size_t round, const RoundRecord* shown, const CostSnapshot* costs) {
  if (round >= log.rounds()) return {};
  const RoundSummary& summary = log.summary(round);
  const ReplySummary& reply = log.replies()[summary.reply];
  if (reply.mode == DecodeMode::ar) return {};
  if (reply.plain_tokens_per_second > 0) return {reply.plain_tokens_per_second, "measured"};
  if (costs != nullptr && !costs->passes.empty()) return {1000 / costs->table.ar_ms(summary.context), "calibrated"};
  if (shown != nullptr && shown->choice.ar_tokens_per_second > 0)
    return {shown->choice.ar_tokens_per_second, "predicted"};
  return {};
}

}  // namespace canopy::app
