#pragma once
// The reference device, a Device in plain C++ whose ops are their formulas; tests call it the oracle. Sums are computed
// in double and rounded to f32 when stored, so a backend that computes in f32 may differ from it by rounding only. It
// is single-threaded, and a row's result depends neither on the width of an op nor on the row's place in it.

#include <cstdint>
#include <memory>

#include "engine/compute/device.h"

namespace canopy {

/// A reference device with `memory_bytes` bytes of memory; allocating more throws out_of_memory, as on a real device.
/// rounds_to_8_bits: products of quantized weights round their activations like the kernels of the family matrix_i8.
std::unique_ptr<Device> make_reference_device(uint64_t memory_bytes = uint64_t{8} << 30, bool rounds_to_8_bits = false);

}  // namespace canopy
