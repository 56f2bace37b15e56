#pragma once
// Models that are on this computer already: in the cache of Hugging Face's tools, and where other programs keep theirs.
// Nothing is ever written there.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace canopy {

/// One model of a store, found by names alone: whether it can be opened is not looked at.
struct StoredModel {
  std::string name;            // "Qwen/Qwen3-4B-GGUF:Q4_K_M", "llama3.2:3b": how people know it, and what --model takes
  std::string source;          // whose it is: "Hugging Face", "Ollama", "LM Studio", "Jan", "llama.cpp", "GPT4All"
  std::filesystem::path path;  // to be opened; empty where there is a problem
  std::vector<std::string> notes;  // what its program adds to it: "a template of its own", "temperature 0.6"
  std::string problem;             // why it cannot be used, as a sentence: a broken manifest, a missing file
};

/// Where the programs keep their models; an empty path is not looked at.
struct StorePlaces {
  std::filesystem::path hub;                     // hub_cache_folder()
  std::vector<std::filesystem::path> ollama;     // $OLLAMA_MODELS, ~/.ollama/models, that of its service
  std::vector<std::filesystem::path> lm_studio;  // ~/.lmstudio/models, ~/.cache/lm-studio/models
  std::vector<std::filesystem::path> jan;        // folders of its data, with llamacpp/models in them
  std::vector<std::filesystem::path> llama_cpp;  // $LLAMA_CACHE, ~/.cache/llama.cpp
  std::vector<std::filesystem::path> gpt4all;    // ~/.local/share/nomic.ai/GPT4All, and as it is set there
};

/// Those of this user.
StorePlaces store_places();

/// All models of all stores, store by store, sorted by name. Never throws for what cannot be read: a model that is
/// broken is listed with its problem. Once stop is requested it returns what it has found so far.
std::vector<StoredModel> stored_models(const StorePlaces& places, const std::stop_token& stop = {});

/// The models of the cache of Hugging Face's tools alone.
std::vector<StoredModel> hub_models(const std::filesystem::path& cache, const std::stop_token& stop = {});

/// The path to open for what a user named as a model: a file or folder as it is; else OWNER/REPO[:QUANT|FILE] in the
/// cache; else a name that stored_models() gives. Nothing is fetched. What is none of these comes back as it is, for
/// who opens it to refuse, but for a name of the hub: that throws bad_input with the command that fetches it.
std::string path_of_model(const std::string& named);

}  // namespace canopy
