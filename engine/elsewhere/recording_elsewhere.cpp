#include "engine/elsewhere/recording_elsewhere.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/trace/trace_writer.h"

namespace canopy {
namespace {

TraceHeader header_elsewhere(const TraceReader& trace, const CostsElsewhere& there) {
  TraceHeader header = trace.header();
  if (there.source == CostSource::recorded) return header;
  header.device = there.name;
  header.backend.clear();
  header.driver.clear();
  header.variants.clear();
  header.calibration.clear();
  header.times = to_string(there.source);
  return header;
}

/// A reply in the mode, by the policy and with the tree that it was re-run with.
TraceReplyBegin begin_elsewhere(TraceReplyBegin begin, const WhatIf& run, size_t reply, CostPolicy recorded,
                                const WhatIfWish& wish) {
  const auto first = std::ranges::find(run.rounds, reply, &WhatIfRound::reply);
  if (first != run.rounds.end()) begin.mode = first->record.mode;
  begin.policy = begin.mode == DecodeMode::adaptive ? to_string(wish.policy.value_or(recorded)) : "";
  if (wish.budget && begin.mode == DecodeMode::tree) begin.budget = *wish.budget;
  return begin;
}

struct Written {
  uint32_t tokens = 0;
  double ms = 0;
};

Written write_rounds(const WhatIf& run, size_t reply, TraceWriter& writer) {
  Written written;
  for (const WhatIfRound& round : run.rounds) {
    if (round.reply != reply) continue;
    writer.append(round.record);
    written.tokens += static_cast<uint32_t>(round.record.emitted.size());
    written.ms += round.record.ms.total();
  }
  return written;
}

}  // namespace

void write_recording_elsewhere(const std::filesystem::path& path, const TraceReader& trace,
                               std::span<const RecordedReply> replies, const WhatIf& run, const WhatIfWish& wish,
                               const CostsElsewhere& there) {
  if (!run.exact) {
    throw bad_input("This re-run cannot be written as a recording, since its passes do not make up the text. " +
                    run.why_not);
  }
  const auto piece = [&trace](uint32_t token) {
    const trace::Piece* const known = trace.piece(token);
    return known != nullptr ? *known : trace::Piece{};
  };
  TraceWriter writer(path, header_elsewhere(trace, there), piece);
  for (size_t i = 0; i < replies.size(); ++i) {
    const TraceReply& recorded = trace.replies()[replies[i].index];
    writer.begin(begin_elsewhere(recorded.begin, run, i, replies[i].policy, wish));
    writer.prefilled({recorded.prefill->reused_tokens, 0, recorded.prefill->first_token});
    const Written written = write_rounds(run, i, writer);
    // An interrupted text may end before the last pass, whose end is not known.
    if (!recorded.end || written.tokens + 1 != replies[i].text.size()) continue;
    TraceReplyEnd end = *recorded.end;
    end.decode_ms = written.ms;
    writer.end(end);
  }
  writer.finish();
  if (!writer.problem().empty()) throw bad_input(writer.problem());
}

}  // namespace canopy
