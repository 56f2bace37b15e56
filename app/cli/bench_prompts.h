#pragma once
// The prompts of a measurement as token ids of the measured model.

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/bench_modes.h"
#include "engine/comparison/prompt_file.h"

namespace canopy::cli {

/// Each prompt as one turn of the user, put through the model's chat template.
std::vector<BenchPrompt> encode_prompts(const Engine& model, const std::vector<MeasuredPrompt>& prompts);

/// For each length, `count` prompts of that many tokens, or a few fewer since they end with a whole word. They are made
/// of the texts of `prompts` joined, each beginning with another one; their category is "512 tokens". Throws bad_input
/// for a length that the chat template alone exceeds.
std::vector<BenchPrompt> long_prompts(const Engine& model, const std::vector<MeasuredPrompt>& prompts,
                                      const std::vector<uint32_t>& lengths, uint32_t count);

}  // namespace canopy::cli
