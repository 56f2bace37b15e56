#pragma once
// Whether a drafter can draft for a model. A wrong pair would still give the model's exact text, since every token is
// verified, but no draft would be accepted; a pair whose sizes differ cannot run at all.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/format/drafter_file.h"
#include "engine/format/model_file.h"

namespace canopy {

/// Throws bad_input with the reason where the two cannot work together: hidden size, aux layers beyond the model's
/// layers, a stated number of layers or vocabulary that is another, a mask token outside the vocabulary, a config that
/// validate_drafter_config() refuses. Otherwise says, one sentence each, what is unusual about the pair.
std::vector<std::string> check_pair(const ModelConfig& target, const DrafterConfig& drafter);

/// The same, tokenizers compared besides where the drafter brings one.
std::vector<std::string> check_pair(const ModelFile& target, const DrafterFile& drafter);

/// Whether a drafter fits a target, found out before anything is loaded, for lists of models.
struct PairReport {
  bool fits = false;
  std::string reason;  // why not: a sentence that names the file at fault where one is; empty where it fits
  std::vector<std::string> warnings;  // unusual properties of the pair, one sentence each
};

/// The same from paths as ModelFile and DrafterFile open them. Reads what describes the models, no weights, and needs
/// no device: milliseconds where the files are at hand. Any thread may call it; it does not throw for what is in the
/// files.
PairReport describe_pair(const std::filesystem::path& target, const std::filesystem::path& drafter);

/// One sentence where the drafter's tokenizer has other tokens than the target's; nothing where they agree, or where
/// one of them is missing or cannot be compared.
std::optional<std::string> tokenizer_difference(const TokenizerSource& target, const TokenizerSource& drafter);

}  // namespace canopy
