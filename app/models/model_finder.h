#pragma once
// Finds models on this computer: in the Hugging Face cache, in a folder, and those that were opened lately. Reads only
// names, sizes and the config or header of each model, never weights.

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace canopy::app {

struct FoundModel {
  std::string path;  // in the form that LoadModel takes
  std::string name;  // name for the user
  uint64_t bytes = 0;
  bool drafter = false;
  std::string problem;    // why it cannot be opened, as a sentence; empty if no reason is known
  bool standard = false;  // the model that comes with the set-up
};

/// The folder where Hugging Face tools keep downloads: $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub.
std::filesystem::path hugging_face_cache();

/// The models in a Hugging Face cache, sorted by name. None if the folder does not exist. Once stop is requested it
/// returns those read by then.
std::vector<FoundModel> models_in_cache(const std::filesystem::path& cache, const std::stop_token& stop = {});

/// Describes the model or drafter at a path, or says why there is neither.
FoundModel describe_model(const std::filesystem::path& path);

/// A drafter that might suit a target, and the reason if it does not.
struct DrafterCandidate {
  std::string path;
  std::string name;
  bool fits = false;
  std::string reason;  // "it reads layer 33; the model has the layers 0 to 29."; empty where it fits
};

/// All drafters of `found`, checked against the target; those that fit come first.
std::vector<DrafterCandidate> pair_drafters(const std::string& target, const std::vector<FoundModel>& found);

/// Why this file cannot be opened, as a sentence, if it is neither a model nor a trace. Empty in all other cases
/// (folders, damaged models, missing files): then the engine reports a more exact error.
std::string open_obstacle(const std::filesystem::path& path);

}  // namespace canopy::app
