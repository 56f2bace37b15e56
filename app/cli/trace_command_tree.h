#pragma once
// One round of a trace as text: the tree with its accepted path, why it had its width, and what it took.

#include <ostream>

#include "engine/trace/trace_reader.h"

namespace canopy::cli {

enum class Lines { unicode, ascii };

/// A token between quotes, safe to show; its id where the trace has no text for it.
std::string shown_token(const TraceReader& trace, uint32_t token);

/// Round `index` of the trace. Throws what TraceReader::round() throws.
void show_round(const TraceReader& trace, size_t index, Lines lines, std::ostream& out);

}  // namespace canopy::cli
