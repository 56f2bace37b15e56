#pragma once
// The engine's view of the JSON files in a Hugging Face folder.

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/format/json_text.h"
#include "engine/format/model_config.h"
#include "engine/format/model_file.h"

namespace canopy {

/// Config from the texts of config.json and generation_config.json (empty: there is none), without what depends on
/// tensors alone (quantization, parameters, an untied head that is missing). Validated.
ModelConfig read_hf_config(std::string_view config_json, std::string_view generation_config_json);

/// Reads the part that all transformers have: sizes, norm epsilon and rotary embedding, but nothing of the vocabulary.
/// Not validated. With `turns_part` heads may be turned in part; otherwise that is refused. With `has_experts` the
/// feed-forward size may be missing, and is 0 then.
void read_hf_transformer(const JsonFields& config_json, ModelConfig& config, bool turns_part = false,
                         bool has_experts = false);

/// Reads tokenizer.json, tokenizer_config.json and the chat template where they are there.
TokenizerSource read_hf_tokenizer(const std::filesystem::path& folder);

/// The text of an optional file of a folder, "" when it is not there.
std::string read_optional_file(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace canopy
