#pragma once
// Operations on text that methods and filters share, as Unicode and Python have them. Every byte of a result keeps the
// origin of the byte that it came from.

#include <cstdint>
#include <vector>

#include "engine/text/jinja/value.h"

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

/// With & < > ' and " as entities; a text that is safe stays as it is. The result is safe.
Text escaped(Context& context, const Text& text);
/// Everything that is not ASCII as a backslash and a number.
Text only_ascii(Context& context, const Text& text);

/// All keep a text safe, as Unicode maps case: one character may become several.
Text upper(Context& context, const Text& text);
Text lower(Context& context, const Text& text);
Text swap_case(Context& context, const Text& text);
Text fold_case(Context& context, const Text& text);
/// The first character in upper case, all others in lower case.
Text capitalize(Context& context, const Text& text);
/// What str.islower(), str.isupper() and str.istitle() say.
enum class Case { lower, upper, title };
bool is_case(Context& context, const Text& text, Case wanted);

/// Words begin behind everything that has no case (str.title()), or only behind white space, '-' and opening
/// brackets (the filter).
enum class WordStart { after_what_has_no_case, after_space_or_bracket };
Text title(Context& context, const Text& text, WordStart rule);

/// Filled up to `width` characters.
enum class Align { left, center, right };
Text padded(Context& context, const Text& text, int64_t width, const Text& fill, Align align);

}  // namespace canopy::jinja
