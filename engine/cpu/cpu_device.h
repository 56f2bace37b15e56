#pragma once
// The processor as a device: exact like the others, with the same bits on every instruction set and for any number of
// threads.

#include <memory>

#include "engine/compute/backend.h"

namespace canopy {

/// `kernels`: an instruction set (cpu::choose_set); `threads`: 0 takes usable_cores(). Throws unavailable where
/// the processor lacks the set, bad_input for more threads than are allowed.
std::unique_ptr<Device> open_cpu_device(const DeviceSettings& settings = {});

/// The processor as one of the backends.
Backend cpu_backend();

}  // namespace canopy
