#pragma once
// Removes all texts and tokens from a trace that others may read. The shape of the trees, probabilities, times and
// counts stay. (Who has both models and patience may still guess text from the probabilities.)

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
