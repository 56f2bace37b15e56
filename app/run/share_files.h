#pragma once
// What is shared from the window: the work that makes a file, ready for a thread of its own.

#include "app/share/share_job.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Takes hold of the rounds that the work needs, so that it may go on beside the window; they are read, and whatever
/// takes longer than a frame is done, when the work is called. Throws bad_input where the rounds cannot be had any
/// more.
ShareJob::Make make_of(const ViewModel& view, ShareKind kind);

}  // namespace canopy::app
