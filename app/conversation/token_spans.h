#pragma once
// Which token of a round wrote which bytes of a reply.

#include <cstdint>
#include <span>

#include "app/conversation/message.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

/// Adds the tokens of a round to a message's spans. `round`: of the reply, from 0. The first token of the round begins
/// at text_begin, token i ends at text_ends[i] (RoundFinished). What lies before the first round is the first token's,
/// which came out of the prompt's pass.
void append_spans(Message& message, const RoundRecord& record, uint32_t round, uint32_t text_begin,
                  std::span<const uint32_t> text_ends);

}  // namespace canopy::app
