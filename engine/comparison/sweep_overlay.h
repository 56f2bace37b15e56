#pragma once
// Two sweeps beside each other: what one device, model or day does and another one did.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/comparison/sweep.h"
#include "engine/comparison/sweep_summary.h"

namespace canopy {

/// A way to decode that both sweeps have, over the prompts that both have.
struct OverlayRow {
  WayToDecode way;
  SweepCell ours, theirs;
  Ratio times_theirs;  // tokens per second of ours / theirs; not known where either has none. Its error is that of the
                       // two means, as runs of different sweeps are no pairs
  uint64_t texts = 0;  // prompts of which both have a text that can be compared
  uint64_t same_texts = 0;
};

struct OverlayResult {
  std::vector<OverlayRow> rows;    // in the order of ours
  uint64_t prompts = 0;            // that both have
  std::vector<std::string> notes;  // settings that differ, as sentences
};

/// Columns are matched by their way and, where a sweep has it with several subjects, the first of them.
OverlayResult overlay(const Sweep& ours, const Sweep& theirs);

/// "Radeon RX 7900 XTX": what tells two sweeps apart, the device, with the model where that differs too.
std::string overlay_name(const Sweep& other, const Sweep& beside);

}  // namespace canopy
