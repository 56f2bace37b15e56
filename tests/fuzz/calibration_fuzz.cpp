// Calibrations that somebody sent: the file, and its table where the hash is made right.

#include <cmath>
#include <string>

#include "engine/speculation/calibration.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/sealed_calibration.h"

namespace canopy::fuzz {
namespace {

void check(const std::string& text) {
  accepted([&] {
    const ForeignCalibration calibration = parse_foreign_calibration(text);
    const CostTable& table = calibration.table;
    require(!table.verify_points().empty(), "a calibration holds a pass");
    for (const uint32_t width : {1u, 2u, 17u, 129u, 65536u}) {
      for (const uint32_t context : {0u, 100u, 1u << 26}) {
        const double ms = table.verify_ms(width, context);
        require(std::isfinite(ms) && ms > 0, "times are positive numbers");
        require(std::isfinite(table.other_ms(width)) && table.other_ms(width) >= 0, "rests are numbers from 0 on");
        if (!table.has_draft()) continue;
        const double draft = table.draft_ms(width, context);
        require(std::isfinite(draft) && draft > 0, "drafts take positive times");
      }
    }
  });
}

}  // namespace

void run(std::string_view input) {
  check(std::string(input));
  check(sealed_calibration(input));
}

}  // namespace canopy::fuzz
