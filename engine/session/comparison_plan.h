#pragma once
// A comparison that was asked for as the sweep that it begins, without who takes part and without runs.

#include <string>
#include <vector>

#include "engine/client/comparison_client.h"
#include "engine/comparison/prompt_file.h"

namespace canopy {

/// `commit` is the program's.
Sweep plan_of(const Compare& command, const std::string& commit);

/// Its id, category and the hash of its last turn.
SweepPrompt sweep_prompt(const ComparisonPrompt& prompt);

/// The prompts as a file holds them; empty where one has more than the user's first turn.
std::vector<MeasuredPrompt> measured_prompts(const std::vector<ComparisonPrompt>& prompts);

/// Takes what an earlier measurement left in `file` into a sweep whose subjects and contestants are there. Throws
/// bad_input where the file has another plan, naming the first difference with both values; or, without `resume`, where
/// it is there at all.
void take_earlier_runs(const std::string& file, bool resume, Sweep& sweep);

}  // namespace canopy
