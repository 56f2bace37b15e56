#pragma once
// Redaction of trace records: keeps tree shapes, probabilities, times and counts, and removes texts and token ids. It
// is not a guarantee of secrecy: someone who has both models may still guess text from the probabilities.

#include "engine/trace/round_record.h"
#include "engine/trace/trace_records.h"

namespace canopy {

/// Tokens are numbered anew in each round, in the order of their appearance, so that equal tokens of a round stay equal
/// and those of different rounds cannot be compared: the frequency of tokens would give a text away.
RoundRecord redacted(RoundRecord record);

/// The record without the prompt, the stop strings and the tokens of the logit bias.
TraceReplyBegin redacted(TraceReplyBegin begin);

/// The record without its first token.
TracePrefill redacted(TracePrefill prefill);

/// The record without its text.
TraceReplyEnd redacted(TraceReplyEnd end);

}  // namespace canopy
