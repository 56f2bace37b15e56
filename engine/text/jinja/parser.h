#pragma once

#include "engine/text/jinja/ast.h"
#include "engine/text/jinja/limits.h"

namespace canopy::jinja {

/// Throws SyntaxFailure, naming the line.
Program parse(std::string_view source, const Limits& limits);

}  // namespace canopy::jinja
