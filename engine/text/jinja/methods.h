#pragma once
// The methods of strings, lists and dicts.

#include <optional>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace canopy::jinja {

/// value.name as something to call, where the value has a method of that name. Methods that would change their value
/// are undefined.
std::optional<Value> find_method(const Value& value, std::string_view name);

}  // namespace canopy::jinja
