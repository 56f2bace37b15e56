#pragma once
// The prompts of a measurement, and its results as JSON and as tables.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/bench_modes.h"
#include "engine/base/figures.h"
#include "engine/bench/prompt_file.h"

namespace canopy::cli {

// The prompts of a measurement: their files, and their token ids in the measured model.

/// The files and folders that --prompts named, else the prompts that come with Canopy. Throws UsageError where those
/// are not there.
std::vector<std::filesystem::path> prompt_paths(const std::vector<std::string>& named);

/// Each prompt as one turn of the user, put through the model's chat template.
std::vector<BenchPrompt> encode_prompts(const Engine& model, const std::vector<MeasuredPrompt>& prompts);

/// For each length, `count` prompts of that many tokens, or a few fewer since they end with a whole word. They are made
/// of the texts of `prompts` joined, each beginning with another one; their category is "512 tokens". Throws bad_input
/// for a length that the chat template alone exceeds.
std::vector<BenchPrompt> long_prompts(const Engine& model, const std::vector<MeasuredPrompt>& prompts,
                                      const std::vector<uint32_t>& lengths, uint32_t count);

// The results of a measurement of modes as JSON and as tables.

/// What was measured: device, driver, model, drafter, version, commit, kv, kernels.
nlohmann::ordered_json describe_subject(const Engine& model);

/// One object for each way and category, with all that was measured of it.
nlohmann::ordered_json to_json(const std::vector<ModeResult>& modes);
nlohmann::ordered_json to_json(const std::vector<ContextResult>& contexts);
nlohmann::ordered_json to_json(const std::vector<ForcedResult>& results);

TextTable table_of(const std::vector<ModeResult>& modes);
TextTable table_of(const std::vector<ContextResult>& contexts);
TextTable table_of(const std::vector<ForcedResult>& results);

std::string json_text(const nlohmann::ordered_json& json);

/// Writes to a file, to standard output if the target is "-", nowhere if it is empty. Throws bad_input.
void write_report(const std::string& target, const std::string& content);

// Memory that is emulated (DeviceSettings::memory_gb_s): what is said of it beside what was measured with it.

/// What the mode adaptive is to reach there over plain decoding, with kernels of AVX-512.
struct EmulationAim {
  double gb_s = 7, times_ar = 1.1;
};

/// {"gb_s_a_thread", "adaptive_times_ar", "aim"}: the aim is null with other kernels and at other rates, the ratio
/// where the mode adaptive was not measured over all prompts.
nlohmann::ordered_json emulation_json(double gb_s, const std::string& kernels, const std::vector<ModeResult>& modes);
/// The same as sentences, which say that no speed is the machine's own.
std::string emulation_words(double gb_s, const std::string& kernels, const std::vector<ModeResult>& modes);

/// The line above a table: "SmolLM2..., drafter ..., on llvmpipe (...)".
std::string headline(const Engine& model);

}  // namespace canopy::cli
