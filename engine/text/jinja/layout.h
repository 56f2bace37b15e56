#pragma once
// Text in lines of a width.

#include <vector>

#include "engine/text/jinja/context.h"

namespace canopy::jinja {

/// The lines of at most `width` characters that a line becomes, without the white space where they are parted.
std::vector<Text> wrapped(Context& context, const Text& line, size_t width, bool break_words, bool break_at_hyphens);

/// pprint.pformat(): literals in lines of 80 characters, the keys of dicts in order.
Text pretty(Context& context, const Value& value);

}  // namespace canopy::jinja
