#pragma once
// The prompts of a measurement as token ids of the measured model.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/bench_modes.h"
#include "app/cli/prompt_file.h"

namespace canopy::cli {

/// Reads the prompts of the files, and of all *.jsonl files of the folders in the order of their names. Throws
/// bad_input for a file that is missing or wrong, and for a folder without such files.
std::vector<Prompt> read_all_prompts(const std::vector<std::filesystem::path>& paths);

/// The first `limit` of each category (0: all), grouped by category in order of first appearance.
std::vector<Prompt> limit_by_category(const std::vector<Prompt>& prompts, uint32_t limit);

/// Each prompt as one turn of the user, put through the model's chat template.
std::vector<BenchPrompt> encode_prompts(const Engine& model, const std::vector<Prompt>& prompts);

/// For each length, `count` prompts of that many tokens, or a few fewer since they end with a whole word. They are made
/// of the texts of `prompts` joined, each beginning with another one; their category is "512 tokens". Throws bad_input
/// for a length that the chat template alone exceeds.
std::vector<BenchPrompt> long_prompts(const Engine& model, const std::vector<Prompt>& prompts,
                                      const std::vector<uint32_t>& lengths, uint32_t count);

}  // namespace canopy::cli
