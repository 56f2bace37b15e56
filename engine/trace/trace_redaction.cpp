#include "engine/trace/trace_redaction.h"

#include <unordered_map>

namespace canopy {

RoundRecord redacted(RoundRecord record) {
  std::unordered_map<uint32_t, uint32_t> numbers;
  const auto number = [&](uint32_t& token) {
    token = numbers.try_emplace(token, static_cast<uint32_t>(numbers.size())).first->second;
  };
  for (RoundNode& row : record.nodes) number(row.node.token);
  for (RoundNode& row : record.nodes) {
    if (row.target_token != RoundNode::unknown) number(row.target_token);
  }
  for (uint32_t& token : record.emitted) number(token);
  return record;
}

TraceReplyBegin redacted(TraceReplyBegin begin) {
  begin.prompt.clear();
  begin.stop_strings.clear();
  begin.sampling.logit_bias.clear();
  return begin;
}

TracePrefill redacted(TracePrefill prefill) {
  prefill.first_token.reset();
  return prefill;
}

TraceReplyEnd redacted(TraceReplyEnd end) {
  end.text.clear();
  return end;
}

}  // namespace canopy
