#pragma once
// Everything that happens to a user's file before the first token, without a GPU: it is opened and validated, its
// tokenizer and chat template are made and used, its weights are planned, read and put on a reference device.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/format/model_config.h"

namespace canopy::test {

struct WholeLoad {
  ModelConfig config;
  std::vector<std::string> tokens;   // bytes of each token, by id
  std::vector<uint32_t> sample_ids;  // of seed_sample, with control tokens recognised
  std::vector<uint32_t> prompt_ids;  // of a conversation whose messages contain spellings of control tokens
  std::string chat_warning;          // why the model's own template is not used
  std::map<std::string, std::vector<float>> values;  // all elements by canonical name
};

/// Loads the model. Throws what loading throws.
WholeLoad load_whole(const std::filesystem::path& path);

/// What differs, as the beginning of a sentence; empty if nothing does. Floats are compared bit by bit.
std::string difference(const WholeLoad& a, const WholeLoad& b);
std::string difference_of_configs(const ModelConfig& a, const ModelConfig& b);
std::string difference_of_text(const WholeLoad& a, const WholeLoad& b);
std::string difference_of_values(const WholeLoad& a, const WholeLoad& b);

}  // namespace canopy::test
