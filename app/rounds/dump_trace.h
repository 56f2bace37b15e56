#pragma once
// A trace as the window would show it, for other programs: no device, no model, no drawing.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace canopy::app {

/// Writes one JSON object: {"trace", "notice", "header", "rounds", "replies", "statistics"}, and with `round`, counted
/// from 0 over all replies, that round whole under "round". Throws bad_input for what TraceLog refuses and for a round
/// that is not there.
void dump_trace(const std::string& path, std::optional<uint64_t> round, std::ostream& out);

/// Throws bad_input, naming what is allowed, where a log of so many rounds has none of this number.
void check_round(uint64_t round, size_t rounds);

}  // namespace canopy::app
