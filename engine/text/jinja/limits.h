#pragma once
// Limits on the steps, depth and memory of a template. Templates come with model files and are not trusted.

#include <cstddef>

namespace canopy::jinja {

struct Limits {
  size_t source_bytes = size_t{1} << 20;  // of the template itself
  size_t nesting = 200;                   // of expressions and blocks in the template
  size_t expression_nodes = 5000;         // of one expression; bounds the depth of its tree
  size_t steps = 1'000'000;               // statements, operations, and elements touched by built-ins
  size_t call_depth = 64;                 // macros and recursive loops inside each other; lists inside lists
  size_t frames = 1500;                   // expressions and blocks being worked on at once; bounds the stack
  size_t text_bytes = size_t{128} << 20;  // of all text made or searched on the way
  size_t output_bytes = size_t{4} << 20;  // of the result
};

}  // namespace canopy::jinja
