#pragma once
// Measured times of passes, as a file brings them: what `canopy-cli predict --json` prints, with "source": "measured".

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace canopy::cli {

/// The passes of a model on a device.
struct MeasuredPasses {
  std::string device, shape;
  uint32_t context = 0;          // positions before each pass
  std::vector<uint32_t> widths;  // ascending
  std::vector<double> ms;        // [widths]
  double bandwidth_share = 0;    // of the peak, at width 1; 0: the file does not say
};

/// {"devices": [{"name", "shape", "widths", "ms", "source": "measured", "context", "bandwidth_share"}]}; the last two
/// may be missing, other keys are ignored. Throws bad_input that names the file and the key.
std::vector<MeasuredPasses> read_measured(const std::filesystem::path& path);

}  // namespace canopy::cli
