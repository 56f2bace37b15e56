#pragma once
// A comparison that a front end asked for: made as comparison.h has it, told as events, kept in a file run by run.

#include <functional>
#include <stop_token>
#include <string>

#include "engine/session/comparison.h"
#include "engine/session/engine_client.h"
#include "engine/session/reply.h"

namespace canopy {

/// What the engine's thread has for it.
struct ComparisonHost {
  LoadedSubject loaded;
  ComparisonSubjects::OpenDevice open_device;
  ComparisonSubjects::NameDevice device_uuid;  // may be empty
  double calibration_s = 0;
  std::string commit;
  ReplyPublisher::Publish publish;
  std::function<bool()> is_paused;
  std::function<void()> wait_while_paused;  // or until the comparison is stopped
};

/// Tells the comparison from ComparisonBegun to ComparisonFinished. Throws what ComparisonSubjects throws, bad_input
/// for one that cannot be made, and the loss of the loaded model's device; what was measured is in the file then.
void compare_and_tell(const ComparisonHost& host, const Compare& command, const std::stop_token& stop);

}  // namespace canopy
