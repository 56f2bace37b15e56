#pragma once
// The filter that makes foreign text safe to show in a terminal, a window or a log.

#include <cstddef>
#include <string>
#include <string_view>

namespace canopy {

enum class LineBreaks { escape, keep };

/// Returns `text` as valid UTF-8 without characters that control a terminal or the text layout. Control characters (so
/// every terminal escape), line and paragraph separators, bidirectional overrides, invisible tag characters and
/// noncharacters appear as "\x1b" or "\u202e"; invalid UTF-8 becomes U+FFFD. Longer than `max_bytes`, it is cut between
/// characters and ends in "…". With LineBreaks::keep, newlines and tabs stay.
std::string printable(std::string_view text, size_t max_bytes = 256, LineBreaks line_breaks = LineBreaks::escape);

/// A name from a file for a message: printable, in single quotes.
inline std::string quoted_name(std::string_view name) {
  return "'" + printable(name) + "'";
}

}  // namespace canopy
