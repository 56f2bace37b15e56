#pragma once
// Models on this computer: those of the Hugging Face cache, of a folder, and those that were opened lately. Reads
// names, sizes and a config or a header each; never weights.

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace canopy::app {

struct FoundModel {
  std::string path;  // as LoadModel takes it
  std::string name;  // for people
  uint64_t bytes = 0;
  bool drafter = false;
  std::string problem;  // why it cannot be opened, as a sentence; empty when nothing speaks against it
};

/// Where Hugging Face's tools keep what they download: $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub.
std::filesystem::path hugging_face_cache();

/// The models in a cache of that form, by name. A folder that is not there holds none. Once stop is requested, only
/// those that were read by then.
std::vector<FoundModel> models_in_cache(const std::filesystem::path& cache, const std::stop_token& stop = {});

/// What one path holds: a model, a drafter, or why neither.
FoundModel describe_model(const std::filesystem::path& path);

/// A drafter that could go with a target, and why it cannot.
struct DrafterCandidate {
  std::string path;
  std::string name;
  bool fits = false;
  std::string reason;  // "it reads layer 33; the model has the layers 0 to 29."; empty where it fits
};

/// Every drafter of `found` against the target, those that fit first.
std::vector<DrafterCandidate> pair_drafters(const std::string& target, const std::vector<FoundModel>& found);

/// Why nothing can be opened there, as a sentence: a file that is neither a model nor a trace. Empty for all others,
/// of which the engine knows more: folders, models that are damaged, files that are not there.
std::string open_obstacle(const std::filesystem::path& path);

}  // namespace canopy::app
