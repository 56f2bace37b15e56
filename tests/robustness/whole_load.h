#pragma once
// Everything that happens to a user's file before the first token, without a GPU: opened, validated, its tokenizer and
// chat template made and used, its weights planned, read and put on a (reference) device.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/format/model_config.h"

namespace canopy::test {

struct WholeLoad {
  ModelConfig config;
  std::vector<std::string> tokens;                   // bytes by id
  std::vector<uint32_t> sample_ids;                  // of seed_sample, control tokens parsed
  std::vector<uint32_t> prompt_ids;                  // of a conversation with hostile content
  std::string chat_warning;                          // why the model's own template is not used
  std::map<std::string, std::vector<float>> values;  // all elements by canonical name
};

/// Throws what loading throws.
WholeLoad load_whole(const std::filesystem::path& path);

/// What is different, as a sentence without an end; empty where nothing is. Floats are compared bit by bit.
std::string difference(const WholeLoad& a, const WholeLoad& b);
std::string difference_of_configs(const ModelConfig& a, const ModelConfig& b);
std::string difference_of_text(const WholeLoad& a, const WholeLoad& b);
std::string difference_of_values(const WholeLoad& a, const WholeLoad& b);

}  // namespace canopy::test
