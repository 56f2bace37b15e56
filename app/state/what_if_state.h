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

/// What was asked about the rounds on show, and the answer as far as it is there.
struct WhatIfAsked {
  WhatIfAnswer answer;
  uint64_t asked = 0;  // number of the last question
  // What it was about: the same is not asked again.
  std::weak_ptr<const RoundLog> log;
  size_t first_round = 0, rounds = 0;
  bool ended = false;
  std::vector<std::string> choices;
};

struct WhatIfState : WhatIfAsked {
  std::vector<std::string> devices = {"rx7900xtx", "rtx4090", "h100"};  // by profile
  std::vector<std::string> calibrations;                                // paths
  std::vector<WhatIfDevice> known;                                      // what a device can be, for menus
  WhatIfAsked chip;                                                     // of the one device that Watch speaks of

  bool writing = false;  // a recording of what a device would have done, to be shown
  bool densifying = false;
  DensifyProgress dense_progress;
  std::string dense_trace;  // that got its drafts and is to be opened again; empty: none
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

/// The same for the one device that Watch speaks of; in a growing reply less often.
std::optional<WhatIfQuestion> next_chip_question(WhatIfState& state, const RoundsState& rounds,
                                                 const std::string& device);

/// Takes an answer; one to an earlier question changes nothing.
void take_answer(WhatIfAsked& asked, WhatIfAnswer answer);

}  // namespace canopy::app
