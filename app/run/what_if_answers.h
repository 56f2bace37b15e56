#pragma once
// Answers to "what if it had run elsewhere": re-runs with predicted costs and with those of calibration files.

#include <filesystem>
#include <string>
#include <vector>

#include "app/whatif/what_if_answer.h"

namespace canopy::app {

/// The WhatIfMaker of the application: where the rounds were recorded first, then calibrations, then devices. What
/// cannot be said of one device is its problem, and the others go on.
WhatIfAnswer answer_what_if(const WhatIfQuestion& question, const std::function<void(const WhatIfAnswer&)>& tell,
                            const std::stop_token& stop);

/// The devices that can be predicted for.
std::vector<WhatIfDevice> predictable_devices();

/// Whether the file says that it is a calibration, as the window opens files by their contents.
bool looks_like_calibration(const std::filesystem::path& path);

/// Writes what it would be there as a recording into a new file in the folder for temporary files, and returns its
/// path. Throws what write_recording_elsewhere() throws.
std::filesystem::path write_as_if(const TraceReader& trace, const WhatIfThere& there);

}  // namespace canopy::app
