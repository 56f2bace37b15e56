#pragma once
// What templates read as it stands in JSON: the tools that a prompt offers to a model, and fields of turns such as the
// calls of these.

#include <string_view>

#include "engine/text/jinja/value.h"

namespace canopy {

/// Reads a JSON array of objects, mostly {"type": "function", "function": {"name", "description", "parameters"}}, as a
/// template sees it: keys in the order of the text, whole numbers whole. All its strings are content: none of them can
/// become a control token. Throws Error(bad_input) for anything else, and for an empty array.
jinja::Value tools_from_json(std::string_view json);

/// Reads ChatTurn::fields in the same way. Throws Error(bad_input) for what is no JSON.
jinja::Value turn_fields_from_json(std::string_view json);

}  // namespace canopy
