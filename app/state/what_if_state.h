#pragma once
// What the view "What if" shows: the devices that were chosen, the answer as far as it is there, and when to ask anew.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/rounds/rounds_state.h"
#include "app/whatif/what_if_answer.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

inline constexpr size_t kWhatIfDevices = 3;
inline constexpr size_t kMostCalibrations = 3;  // from elsewhere; a further one takes the place of the oldest

struct WhatIfState {
  std::vector<std::string> devices = {"rx7900xtx", "rtx4090", "h100"};  // by profile
  std::vector<std::string> calibrations;                                // paths
  std::vector<WhatIfDevice> known;                                      // what a device can be, for menus
  WhatIfAnswer answer;
  uint64_t asked = 0;  // number of the last question

  bool densifying = false;
  DensifyProgress dense_progress;
  std::string dense_trace;  // that got its drafts and is to be opened again; empty: none

  // What was asked about last: the same is not asked again.
  std::weak_ptr<const RoundLog> log;
  size_t rounds = 0;
  bool ended = false;
  std::vector<std::string> choices;
};

struct SetWhatIfDevice {  // predicts for another device in this place
  size_t place = 0;
  std::string device;
};
struct AddCalibration {  // that somebody measured elsewhere
  std::string path;
};
struct DropCalibration {
  std::string path;
};
struct ShowAsIf {  // shows the trees of this device as a recording
  size_t there = 0;
};

struct MakeDense {};  // has the loaded pair draft behind every token of the recording on show

struct StopDense {};  // ends that; what is drafted by then is kept

using WhatIfCommand = std::variant<SetWhatIfDevice, AddCalibration, DropCalibration, ShowAsIf, MakeDense, StopDense>;

/// ShowAsIf, MakeDense and StopDense need the disk and the engine, and do nothing here.
void update(WhatIfState& state, const WhatIfCommand& command);

/// The question to ask now: about a recording once, about a reply of the engine as it grows. `shown` is the round on
/// show. Nothing while there is nothing to ask, or all of it was asked.
std::optional<WhatIfQuestion> next_question(WhatIfState& state, const RoundsState& rounds);

/// Takes an answer; one to an earlier question changes nothing.
void take_answer(WhatIfState& state, WhatIfAnswer answer);

}  // namespace canopy::app
