#pragma once
// String operations behind methods and filters. Every byte of a result keeps the origin of the byte that it came from.

#include <optional>
#include <vector>

#include "engine/text/jinja/context.h"

namespace canopy::jinja {

enum class Sides { both, left, right };

/// Without white space, or without any of the given characters, at the ends.
Text strip(Context& context, const Text& text, const Text* characters, Sides sides);

/// The first `limit` occurrences replaced; all of them where it is negative.
Text replace(Context& context, const Text& text, const Text& from, const Text& to, int64_t limit);

/// Cut at a separator (not empty), or, where it is null, at white space. At most `limit` cuts where that is not
/// negative, the first ones or the last ones.
std::vector<Value> split(Context& context, const Text& text, const Text* separator, int64_t limit);
std::vector<Value> split_from_right(Context& context, const Text& text, const Text* separator, int64_t limit);
std::vector<Value> split_lines(Context& context, const Text& text, bool keep_ends);

/// Simple case mappings: one character for one.
Text upper(Context& context, const Text& text);
Text lower(Context& context, const Text& text);
/// The first character in upper case, all others in lower case.
Text capitalize(Context& context, const Text& text);
/// Words begin behind everything that is not a letter (str.title()), or only behind white space, '-' and opening
/// brackets (the filter).
enum class WordStart { after_any_non_letter, after_space_or_bracket };
Text title(Context& context, const Text& text, WordStart rule);

}  // namespace canopy::jinja
