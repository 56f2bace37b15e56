#pragma once
// A sweep's figures as tables, for people: rounded. Each has the columns that the sweep has something to say in.

#include "engine/base/text_table.h"
#include "engine/comparison/sweep.h"

namespace canopy {

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
