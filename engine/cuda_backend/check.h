#pragma once
// Turns results of the driver into errors.

#include <string>

#include "engine/base/error.h"
#include "engine/cuda_backend/driver_api.h"

namespace canopy::cuda {

/// Whether the context of such a result is unusable for good: illegal accesses, uncorrectable memory errors, a GPU that
/// has fallen off the bus. All later calls would fail alike.
bool is_lost(Result result);

/// "CUDA_ERROR_INVALID_VALUE, invalid argument"
std::string describe(const DriverApi& api, Result result);

/// device_lost, out_of_memory or unavailable, with what was being done in front.
Error error_of(const DriverApi& api, Result result, const std::string& doing);

/// Throws where the result is no success.
inline void check(const DriverApi& api, Result result, const char* doing) {
  if (result != kSuccess) throw error_of(api, result, doing);
}

}  // namespace canopy::cuda
