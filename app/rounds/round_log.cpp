#include "app/rounds/round_log.h"

#include "engine/trace/round_statistics.h"

namespace canopy::app {

RoundSummary summarize(const RoundRecord& record, uint32_t reply) {
  const DraftedPart part = drafted_part(record);
  RoundSummary summary;
  summary.reply = reply;
  summary.context = record.context;
  summary.shape = record.shape;
  summary.width = record.width;
  summary.accepted = part.tokens;
  summary.emitted = static_cast<uint32_t>(record.emitted.size());
  summary.distinct_experts = record.distinct_experts;
  summary.cut = part.cut;
  summary.ms = record.ms;
  summary.predicted = record.predicted;
  return summary;
}

size_t RoundLog::first_of_reply(size_t round) const {
  size_t reply = summaries_[round].reply;
  const uint64_t message = replies_[reply].message;
  while (message != 0 && reply > 0 && replies_[reply - 1].message == message) --reply;
  return replies_[reply].first_round;
}

void RoundLog::count_abridged(const RoundRecord& record) {
  summaries_.push_back(summarize(record, static_cast<uint32_t>(replies_.size() - 1)));
  summaries_.back().accepted = record.accepted;
  ++replies_.back().rounds;
}

void RoundLog::count(const RoundRecord& record) {
  ReplySummary& reply = replies_.back();
  summaries_.push_back(summarize(record, static_cast<uint32_t>(replies_.size() - 1)));
  statistics_.add(record);
  plain_.add(record, 0);
  if (reply.rounds++ == 0 && !record.nodes.empty() && !reply.first_token)
    reply.first_token = record.nodes.front().node.token;
}

}  // namespace canopy::app
