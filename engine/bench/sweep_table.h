#pragma once
// The figures of a sweep, or of two beside each other, as tables for people: rounded. Each has the columns that the
// sweep has something to say in.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/figures.h"
#include "engine/bench/sweep.h"
#include "engine/bench/sweep_summary.h"

namespace canopy {

// Two sweeps beside each other: what one device, model or day does and another one did.

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

// Tables.

/// A row for each cell of the summary (sweep_summary.h).
TextTable summary_table(const Sweep& sweep, uint32_t baseline);

/// All runs, as they are in the file: nothing is rounded, so that a program that reads this has what the JSON has.
TextTable runs_table(const Sweep& sweep);

/// The columns of a sweep beside those of another that decode in the same way, over the prompts that both have.
struct Overlay {
  std::string name;  // of the other: "Radeon RX 7900 XTX, RADV 25.2"
  TextTable table;
};
Overlay overlay_table(const Sweep& sweep, const Sweep& other);

/// "SmolLM2-135M-Instruct.Q4_1.gguf, drafter smollm2-135m-dflash.gguf, on llvmpipe (llvmpipe Mesa 22.3.6)": the
/// subjects of a sweep, each once.
std::string sweep_headline(const Sweep& sweep);

}  // namespace canopy
