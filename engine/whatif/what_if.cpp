#include "engine/whatif/what_if.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/whatif/reply_rerun.h"

namespace canopy {
namespace {

/// Whether all rounds could be chained; nothing is in the result otherwise but the reason.
bool run_chained(std::span<const RecordedReply> replies, const WhatIfWish& wish, const WhatIfCallbacks& callbacks,
                 WhatIf& result) {
  WhatIfState state(replies, wish);
  uint64_t done = 0, total = 0;
  for (const RecordedReply& reply : replies) total += reply.text.size() - 1;
  for (size_t index = 0; index < replies.size(); ++index) {
    ReplyRerun rerun(replies[index], index, wish, state, callbacks.stop);
    while (!rerun.at_end()) {
      std::optional<WhatIfRound> round = rerun.next();
      if (!round && rerun.at_end()) break;
      if (!round) {
        result = {};
        result.why_not = rerun.missing();
        return false;
      }
      done += round->record.emitted.size();
      result.add(std::move(*round));
      if (callbacks.progress) callbacks.progress(done, total);
    }
    if (result.why_not.empty()) result.why_not = rerun.doubt();
  }
  result.exact = result.why_not.empty();
  return true;
}

void run_at_recorded_places(std::span<const RecordedReply> replies, const WhatIfWish& wish,
                            const WhatIfCallbacks& callbacks, WhatIf& result) {
  WhatIfState state(replies, wish);
  uint64_t done = 0, total = 0;
  for (const RecordedReply& reply : replies) total += reply.text.size() - 1;
  for (size_t index = 0; index < replies.size(); ++index) {
    const RecordedReply& reply = replies[index];
    ReplyRerun rerun(reply, index, wish, state, callbacks.stop);
    for (size_t i = 0; i < reply.rounds; ++i) {
      const RoundRecord recorded = reply.round(i);
      std::optional<WhatIfRound> round = rerun.at(recorded);
      if (round) {
        result.add(std::move(*round));
      } else {
        ++result.left_out;
      }
      done += recorded.emitted.size();
      if (callbacks.progress) callbacks.progress(done, total);
    }
  }
  result.exact = false;
}

}  // namespace

void WhatIf::add(WhatIfRound round) {
  tokens += round.record.emitted.size();
  ms += round.record.ms.total();
  plain_known = plain_known && round.ar_ms > 0;
  ar_ms = plain_known ? ar_ms + round.ar_ms : 0;
  chosen += round.chosen ? 1 : 0;
  as_recorded += round.as_recorded ? 1 : 0;
  rounds.push_back(std::move(round));
}

WhatIf what_if(std::span<const RecordedReply> replies, const WhatIfWish& wish, const WhatIfCallbacks& callbacks) {
  if (replies.empty()) {
    throw bad_input(
        "Nothing can be re-run: the recording has no reply with a text (a redacted one has none), or none of two "
        "tokens.");
  }
  WhatIf result;
  if (!run_chained(replies, wish, callbacks, result)) run_at_recorded_places(replies, wish, callbacks, result);
  return result;
}

}  // namespace canopy
