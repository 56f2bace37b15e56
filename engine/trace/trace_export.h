#pragma once
// A trace for other programs.

#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/trace/trace_reader.h"

namespace canopy {

/// One round with all that the trace holds of it. Texts stand beside their ids where the trace has them; bytes that are
/// no whole character become U+FFFD.
nlohmann::ordered_json round_to_json(const RoundRecord& record, const TraceReader& trace);

/// {"format", "notice", "header", "replies": [{..., "rounds": [...]}]}, round by round, so that a long trace needs no
/// memory. Throws bad_input where a round cannot be read.
void export_json(const TraceReader& trace, std::ostream& out);

/// A line a round, its numbers only, under a line of names (RFC 4180). Same errors.
void export_csv(const TraceReader& trace, std::ostream& out);

}  // namespace canopy
