#pragma once
// What a comparison found, in one sentence.

#include <optional>
#include <string>

#include "engine/comparison/sweep.h"
#include "engine/comparison/sweep_summary.h"

namespace canopy {

/// How the texts of a comparison relate.
enum class Agreement {
  unknown,   // nothing to compare yet
  same,      // all of them are the same
  may,       // some differ that may: another model, device or server
  must_not,  // some differ that must not
};

struct Verdict {
  std::string sentence;  // "tree 16 is 1.42 ± 0.03 × ar here; same text"; empty before every column wrote once
  std::optional<uint32_t> fastest;  // the contestant
  Agreement agreement = Agreement::unknown;
};

/// "1.42 ± 0.03": as many digits as the error has meaning, two where it is not known.
std::string ratio_figures(const Ratio& ratio);

/// Over all prompts; the baseline is the sweep's.
Verdict verdict_of(const Sweep& sweep);

}  // namespace canopy
