#pragma once
// Whether a measurement that was not finished can go on here.

#include <string>

#include "engine/comparison/sweep.h"

namespace canopy {

/// The first thing that differs between what was measured and what would be, with both values: "its model is 'a.gguf',
/// and here it would be 'b.gguf'". Empty where one can go on with the other: everything but the date, the program and
/// the runs is equal.
std::string plan_difference(const Sweep& earlier, const Sweep& now);

}  // namespace canopy
