#pragma once
// A reply of the running engine as a run to share: its rounds are copied, so that a thread may make a page of them
// while the engine and the window go on.

#include <cstddef>

#include "app/conversation/conversation.h"
#include "app/rounds/live_log.h"
#include "app/share/shared_run.h"

namespace canopy::app {

/// The reply of the chat that holds this round of the log, with all of its rounds so far. Throws bad_input where the
/// log no longer has all their trees, or the chat does not have the reply.
SharedRun copied_run(const LiveLog& log, const Conversation& chat, size_t round);

/// Where this round of the log is in the copy.
size_t round_in_copy(const LiveLog& log, size_t round);

}  // namespace canopy::app
