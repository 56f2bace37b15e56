#pragma once
// What a trace keeps of a conversation that nobody else shall read: the shape of the trees, probabilities, times and
// counts, but no text and no token. (Who has both models and patience may still guess text from the probabilities.)

#include "engine/trace/round_record.h"
#include "engine/trace/trace_records.h"

namespace canopy {

/// Tokens are numbered anew in each round, in the order of their appearance, so that equal tokens of a round stay equal
/// and those of different rounds cannot be compared: the frequency of tokens would give a text away.
RoundRecord redacted(RoundRecord record);

/// Without prompt, stop strings and the tokens of the logit bias.
TraceReplyBegin redacted(TraceReplyBegin begin);

/// Without its token.
TracePrefill redacted(TracePrefill prefill);

/// Without its text.
TraceReplyEnd redacted(TraceReplyEnd end);

}  // namespace canopy
