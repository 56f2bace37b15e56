#pragma once
// Writes a trace as JSON, with the values that the window would show. Needs no device and no model.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace canopy::app {

/// Writes one JSON object: {"trace", "notice", "header", "rounds", "replies", "statistics"}. With `round`, counted from
/// 0 over all replies, it also writes that whole round under "round". Throws bad_input for a file that TraceLog refuses
/// and for a round that the trace does not have.
void dump_trace(const std::string& path, std::optional<uint64_t> round, std::ostream& out);

/// Throws bad_input, naming the allowed range, unless `round` < `rounds`.
void check_round(uint64_t round, size_t rounds);

}  // namespace canopy::app
