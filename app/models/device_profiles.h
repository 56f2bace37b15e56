#pragma once
// GPUs that a prediction can be made for, by what their makers publish of them.

#include <span>
#include <string_view>

namespace canopy::app {

struct DeviceProfile {
  const char* name;
  double gb_s;      // memory bandwidth, 10^9 bytes a second
  double tflop_s;   // 10^12 operations a second with f16 operands, without sparsity
  const char* gpu;  // what the bandwidth belongs to, for a tooltip
};

/// In the order of a menu; the first is the usual one.
std::span<const DeviceProfile> device_profiles();

/// The profile of that name; the usual one where there is none.
const DeviceProfile& device_profile(std::string_view name = {});

}  // namespace canopy::app
