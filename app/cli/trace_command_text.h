#pragma once
// A whole trace and its statistics as text.

#include <ostream>

#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_reader.h"

namespace canopy::cli {

/// Prints where it was recorded, its replies, and a line for each round. Throws what TraceReader::round() throws.
void show_trace(const TraceReader& trace, std::ostream& out);

void show_statistics(const RoundStatistics& statistics, std::ostream& out);

}  // namespace canopy::cli
