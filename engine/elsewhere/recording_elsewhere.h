#pragma once
// A re-run as a recording of its own, with the trees and the times that the other device would have: so that everything
// that shows recordings shows it, too.

#include <filesystem>
#include <span>

#include "engine/elsewhere/costs_elsewhere.h"
#include "engine/trace/trace_reader.h"

namespace canopy {

/// The header names the other device and says that nothing was recorded there. `replies` are those that were re-run, of
/// this trace, and `wish` is what was asked for. Throws bad_input where the re-run is not exact, since its rounds then
/// do not make up the text, and what TraceWriter throws.
void write_recording_elsewhere(const std::filesystem::path& path, const TraceReader& trace,
                               std::span<const RecordedReply> replies, const WhatIf& run, const WhatIfWish& wish,
                               const CostsElsewhere& there);

}  // namespace canopy
