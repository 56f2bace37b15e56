#pragma once
// Rounds, their statistics and whole traces as JSON and CSV: the same fields for a live run, for its trace and in the
// window.

#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_format.h"
#include "engine/trace/trace_reader.h"

namespace canopy {

/// {"draft": ..., "build": ..., ...} in milliseconds.
nlohmann::ordered_json to_json(const RoundTimes& times);

/// {"times": 3, "places": 4}; null where nothing was counted.
nlohmann::ordered_json to_json(const WentOn& went_on);

/// Shares are 0 ... 1, times milliseconds; every rate stands beside what it was computed from.
nlohmann::ordered_json to_json(const RoundStatistics& statistics);

/// All fields of one round, without words of other chats (without_other_chats()). Token ids are accompanied by their
/// texts where the trace has them; bytes that do not form a whole character become U+FFFD.
nlohmann::ordered_json round_to_json(const RoundRecord& record, const TraceReader& trace);
/// The same of a round that is in no trace.
nlohmann::ordered_json round_to_json(const RoundRecord& record, const TokenTexts& texts);

/// The other direction, all but the texts of tokens. Throws bad_input naming field, value and what is allowed, and
/// where validate() refuses the record; unknown fields are ignored.
RoundRecord round_from_json(const nlohmann::json& json);

/// {"format", "notice", "header", "replies": [{..., "rounds": [...]}]}, written one round at a time, so that memory use
/// does not grow with the trace. Throws bad_input when a round cannot be read.
void export_json(const TraceReader& trace, std::ostream& out);

/// Writes a header line, then one line for each round with its numbers (RFC 4180). Same errors.
void export_csv(const TraceReader& trace, std::ostream& out);

}  // namespace canopy
