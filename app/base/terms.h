#pragma once
// What the words of this window mean, in one place: for the explanations on hover and for the overview of F1.

#include <span>
#include <string_view>

namespace canopy::app {

struct Term {
  std::string_view name;     // as a heading: "Tokens per pass"
  std::string_view aliases;  // other labels of the same thing, each between bars: "|tau|mean accepted length|"
  std::string_view meaning;  // one or two sentences
};

std::span<const Term> terms();

/// The term of this label; upper and lower case are the same. Null where there is none.
const Term* find_term(std::string_view label);

/// What a part of the window is for, in one sentence, by the name that it is drawn under; empty where nothing is known.
std::string_view region_words(std::string_view part);
/// The heading of that part for the user.
std::string_view region_title(std::string_view part);

}  // namespace canopy::app
