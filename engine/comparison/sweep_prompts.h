#pragma once
// The texts of a sweep's prompts. Its file does not have them, as it is given to others; until it is whole they lie in
// a file of their own beside it, so that whoever has the sweep here can go on with it.

#include <filesystem>
#include <vector>

#include "engine/comparison/prompt_file.h"
#include "engine/comparison/sweep.h"

namespace canopy {

/// "sweep.json.prompts.jsonl", a file as prompt_file.h reads them.
std::filesystem::path prompts_path(const std::filesystem::path& file);

/// Writes them there. Throws bad_input naming path and reason.
void keep_prompts(const std::filesystem::path& file, const std::vector<MeasuredPrompt>& prompts);

/// The prompts of a sweep with their texts, in its order: those beside `file`, else those among `known`; what decides
/// is the hash of a text. Throws bad_input naming the prompts that are in neither, and what is wrong with the file
/// beside it.
std::vector<MeasuredPrompt> prompts_of(const Sweep& sweep, const std::filesystem::path& file,
                                       const std::vector<MeasuredPrompt>& known);

}  // namespace canopy
