#pragma once
// Whether a formula is whole and ordinary. MicroTeX trusts what it reads: of an argument that is missing it reads
// beyond the end, and some of its commands change what later formulas mean. A model may write anything.

#include <string_view>

namespace canopy::app {

/// Whether MicroTeX may read the formula: every group, bracket and environment ends, every command has its arguments,
/// and is one of those that formulas are made of.
bool is_whole_formula(std::string_view tex);

}  // namespace canopy::app
