#pragma once
// A reply of the running engine as a run to share. Two steps: the window takes hold of it, which needs no time to speak
// of, and a thread then reads its rounds, while the engine and the window go on.

#include <cstddef>

#include "app/conversation/conversation.h"
#include "app/rounds/live_log.h"
#include "app/share/shared_run.h"

namespace canopy::app {

/// A reply that is given to a thread.
struct LiveReply {
  LiveRounds rounds;  // all of the reply so far
  TraceHeader header;
  SharedReply reply;
  size_t shown = 0;  // the round that it was asked for by, among its rounds
};

/// The reply of the chat that holds this round of the log. Throws bad_input where the chat does not have it, or its
/// rounds do not stand together in the log.
LiveReply live_reply(const LiveLog& log, const Conversation& chat, size_t round);

/// Its rounds, read. Throws bad_input where a tree was dropped, and cancelled.
SharedRun read_run(const LiveReply& reply, const ShareCallbacks& callbacks = {});

}  // namespace canopy::app
