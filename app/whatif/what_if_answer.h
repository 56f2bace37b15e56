#pragma once
// A question about other devices and its answer, device by device.

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/trace/trace_records.h"
#include "engine/whatif/what_if_summary.h"

namespace canopy::app {

/// Asks for a recording as a whole, or for a reply of the engine as far as it is written.
struct WhatIfQuestion {
  uint64_t number = 0;
  std::shared_ptr<const TraceReader> trace;  // null for a reply of the engine, whose rounds are these:
  TraceHeader header;
  std::vector<std::shared_ptr<const RoundRecord>> rounds;
  uint32_t first_token = 0;
  bool ended = false;
  double ar_tokens_per_second = 0;        // measured beside the rounds; 0: it was not
  std::vector<std::string> calibrations;  // files that were measured elsewhere
  std::vector<std::string> devices;       // to predict for, by the names of profiles
  bool brief = false;                     // of these alone, without how the rounds were, and without curves
};

enum class TimesFrom { recorded, measured_elsewhere, predicted };

/// One device. Without a run, `problem` says why.
struct WhatIfThere {
  std::string name;    // "RTX 4090"
  std::string detail;  // "1,008 GB/s"; may be empty
  std::string from;    // a sentence on where its times come from
  std::string choice;  // the profile or the file that was asked for; empty for where the rounds were recorded
  TimesFrom times = TimesFrom::recorded;
  std::string problem;
  WhatIf run;
  WhatIfSummary summary;
  std::vector<WidthRatio> curve;         // of fixed trees, ascending widths
  double ms_of_one = 0, ms_of_many = 0;  // of a pass; 0: not known
};

inline constexpr uint32_t kManyRows = 25;  // of ms_of_many

struct WhatIfAnswer {
  uint64_t number = 0;  // of the question
  std::vector<std::shared_ptr<const WhatIfThere>> there;
  bool whole = false;   // nothing more comes
  std::string problem;  // why nothing can be said of any device; else empty
};

/// Answers a question, calling `tell` with each device that is done. Returns the whole answer; throws cancelled.
using WhatIfMaker = std::function<WhatIfAnswer(
    const WhatIfQuestion& question, const std::function<void(const WhatIfAnswer&)>& tell, const std::stop_token& stop)>;

/// What a device can be chosen from, for menus.
struct WhatIfDevice {
  std::string choice, name, detail;
};

}  // namespace canopy::app
