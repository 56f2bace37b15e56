// Calibrations that somebody sent: the file, and its table where the hash is made right.

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/damage_hash.h"
#include "engine/calibration/calibration_file.h"
#include "tests/fuzz/harness.h"

namespace canopy::fuzz {
namespace {

/// With the hash of its own table, as a careful liar would write it; the input where it is no such file.
std::string sealed(std::string_view input) {
  nlohmann::json file = nlohmann::json::parse(input, nullptr, false);
  if (!file.is_object() || !file.contains("table")) return std::string(input);
  const auto ignore = nlohmann::json::error_handler_t::replace;
  file["hash"] = damage_hash_text(file["table"].dump(-1, ' ', false, ignore));
  return file.dump(-1, ' ', false, ignore);
}

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
  check(sealed(input));
}

}  // namespace canopy::fuzz
