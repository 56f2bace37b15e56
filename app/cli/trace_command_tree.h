#pragma once
// One round of a trace as text: the tree with its accepted path, the reason for its width, and its times.

#include <ostream>

#include "engine/trace/trace_reader.h"

namespace canopy::cli {

enum class Lines { unicode, ascii };

/// A token in quotes, with control characters made visible; its id if the trace has no text for it.
std::string shown_token(const TraceReader& trace, uint32_t token);

/// Prints round `index` of the trace. Throws what TraceReader::round() throws.
void show_round(const TraceReader& trace, size_t index, Lines lines, std::ostream& out);

}  // namespace canopy::cli
