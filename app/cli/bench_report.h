#pragma once
// What a measurement of modes says, as JSON and as tables.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/cli/bench_forced.h"
#include "app/cli/bench_modes.h"
#include "app/cli/bench_table.h"

namespace canopy::cli {

/// device, driver, model, drafter, version, commit, kv: what the figures are of.
nlohmann::ordered_json describe_subject(const Engine& model);

/// One object for each way and category (design.md, section 8, with more fields behind those named there).
nlohmann::ordered_json to_json(const std::vector<ModeResult>& modes);
nlohmann::ordered_json to_json(const std::vector<ForcedResult>& results);

Table table_of(const std::vector<ModeResult>& modes);
Table table_of(const std::vector<ForcedResult>& results);

std::string json_text(const nlohmann::ordered_json& json);

/// Writes to a file, to standard output where the target is "-", and nowhere where it is empty. Throws bad_input.
void write_report(const std::string& target, const std::string& content);

/// Above a table: "SmolLM2..., drafter ..., on llvmpipe (...)".
std::string headline(const Engine& model);

}  // namespace canopy::cli
