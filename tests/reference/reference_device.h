#pragma once
// The oracle: a Device in plain C++ whose ops are their formulas. Sums run in double and are rounded to f32 when they
// are stored, so what a backend computes in f32 may differ from it by rounding only. It is single-threaded, and a row's
// result depends neither on the width of an op nor on where the row stands.

#include <cstdint>
#include <memory>

#include "engine/compute/device.h"

namespace canopy {

/// A reference device on which at most `memory_bytes` can be allocated at a time; more throws out_of_memory, as on a
/// real device.
std::unique_ptr<Device> make_reference_device(uint64_t memory_bytes = uint64_t{8} << 30);

}  // namespace canopy
