#pragma once
// The results of a measurement of modes as JSON and as tables.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/cli/bench_forced.h"
#include "app/cli/bench_modes.h"
#include "engine/base/text_table.h"

namespace canopy::cli {

/// What was measured: device, driver, model, drafter, version, commit, kv, kernels.
nlohmann::ordered_json describe_subject(const Engine& model);

/// One object for each way and category, with the fields of design.md, section 8, and further ones.
nlohmann::ordered_json to_json(const std::vector<ModeResult>& modes);
nlohmann::ordered_json to_json(const std::vector<ContextResult>& contexts);
nlohmann::ordered_json to_json(const std::vector<ForcedResult>& results);

TextTable table_of(const std::vector<ModeResult>& modes);
TextTable table_of(const std::vector<ContextResult>& contexts);
TextTable table_of(const std::vector<ForcedResult>& results);

std::string json_text(const nlohmann::ordered_json& json);

/// Writes to a file, to standard output if the target is "-", nowhere if it is empty. Throws bad_input.
void write_report(const std::string& target, const std::string& content);

/// The line above a table: "SmolLM2..., drafter ..., on llvmpipe (...)".
std::string headline(const Engine& model);

}  // namespace canopy::cli
