#include "app/models/device_profiles.h"

#include <algorithm>

namespace canopy::app {
namespace {

// NVIDIA: the Ada and the Hopper architecture papers, tensor cores with f32 sums. AMD: the product page, peak half
// precision.
constexpr DeviceProfile kProfiles[] = {
    {"RTX 4090", 1008, 165.2, "GeForce RTX 4090, 24 GB GDDR6X"},
    {"RX 7900 XTX", 960, 122.8, "Radeon RX 7900 XTX, 24 GB GDDR6"},
    {"H100", 3350, 989.4, "H100 SXM, 80 GB HBM3"},
};

}  // namespace

std::span<const DeviceProfile> device_profiles() {
  return kProfiles;
}

const DeviceProfile& device_profile(std::string_view name) {
  const auto found = std::ranges::find_if(kProfiles, [&](const DeviceProfile& each) { return each.name == name; });
  return found == std::end(kProfiles) ? kProfiles[0] : *found;
}

}  // namespace canopy::app
