#pragma once
// Turns results of the driver into errors.

#include <algorithm>
#include <iterator>
#include <string>

#include "cuda_backend/driver_api.h"
#include "engine/base/error.h"

namespace canopy::cuda {

/// Of the driver API's results those after which a context cannot be used, or the GPU itself is gone.
inline constexpr Result kLost[] = {
    4,    // deinitialized
    214,  // ECC uncorrectable
    220,  // NVLink uncorrectable
    226,  // an error that was contained to this process
    700,  // illegal address
    702,  // launch timeout
    709,  // context is destroyed
    710,  // assert
    714,  // hardware stack error
    715,  // illegal instruction
    716,  // misaligned address
    717,  // invalid address space
    718,  // invalid program counter
    719,  // launch failed
    721,  // tensor memory leak
    911,  // external device
    999,  // unknown, as after a driver's reset
};

/// Whether the context of such a result is unusable for good: illegal accesses, uncorrectable memory errors, a GPU that
/// has fallen off the bus. All later calls would fail alike.
inline bool is_lost(Result result) {
  return std::ranges::find(kLost, result) != std::end(kLost);
}

/// "CUDA_ERROR_INVALID_VALUE, invalid argument"
std::string describe(const DriverApi& api, Result result);

/// device_lost, out_of_memory or unavailable, with what was being done in front.
Error error_of(const DriverApi& api, Result result, const std::string& doing);

/// Throws where the result is no success.
inline void check(const DriverApi& api, Result result, const char* doing) {
  if (result != kSuccess) throw error_of(api, result, doing);
}

}  // namespace canopy::cuda
