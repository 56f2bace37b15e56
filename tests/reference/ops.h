#pragma once
// The reference implementation of each op: a specialisation of compute() in a file of its own. They run at once, on
// objects of a reference device, and throw bad_input when an argument is missing or does not fit the others.

#include "engine/compute/ops.h"

namespace canopy::reference {

template <class Args>
void compute(const Args& args);

/// Runs the op that it contains.
void compute_op(const Op& op);

}  // namespace canopy::reference
