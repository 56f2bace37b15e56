#pragma once
// Finds models on this computer: in a folder, in the Hugging Face cache, among those opened lately, with the drafters
// that suit them; the search has a thread of its own.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "app/state/background_answers.h"

namespace canopy::app {

// Only names, sizes and the config or header of each model are read, never weights.

struct FoundModel {
  std::string path;  // in the form that LoadModel takes
  std::string name;  // name for the user
  uint64_t bytes = 0;
  bool drafter = false;   // or a head that predicts further tokens, alone
  std::string problem;    // why it cannot be opened, as a sentence; empty if no reason is known
  bool standard = false;  // the model that comes with the set-up
  std::string source;     // the program that keeps it: "Hugging Face", "Ollama"; empty: a file of the user's own
  std::vector<std::string> notes;  // StoredModel::notes, and what of its own drafts for it
};

/// The models in a Hugging Face cache, sorted by name. None if the folder does not exist. Once stop is requested it
/// returns those read by then.
std::vector<FoundModel> models_in_cache(const std::filesystem::path& cache, const std::stop_token& stop = {});

/// Describes the model or drafter at a path, or says why there is neither.
FoundModel describe_model(const std::filesystem::path& path);

/// A drafter that might suit a target, and the reason if it does not.
struct DrafterCandidate {
  std::string path;  // as choose_drafter() takes it
  std::string name;
  bool fits = false;
  std::string reason;  // "it reads layer 33; the model has the layers 0 to 29."; empty where it fits
  std::string note;    // where it fits: what it is, or what is unusual about the pair
};

/// The target's own head, all drafters of `found` and all other models, checked against the target; those that fit come
/// first, drafters before models.
std::vector<DrafterCandidate> pair_drafters(const std::string& target, const std::vector<FoundModel>& found);

/// Why this file cannot be opened, as a sentence, if it is neither a model nor a trace. Empty in all other cases
/// (folders, damaged models, missing files): then the engine reports a more exact error.
std::string open_obstacle(const std::filesystem::path& path);

// The contents of a folder for a small file browser: folders first, then the files that a filter lets through.

enum class PathFilter {
  models,   // GGUF files, folders of Hugging Face models, and recordings
  chats,    // exported chats: JSON
  folders,  // no files
  all,
};

struct FolderEntry {
  std::string name;
  std::string path;
  bool folder = false;
  bool model = false;  // a model file, or a folder that holds a model
  uint64_t bytes = 0;  // of a file; of all parts of a split model, which is listed as its first part
};

struct FolderList {
  std::string folder;                // whose contents these are
  std::string parent;                // empty: there is none
  std::vector<FolderEntry> entries;  // folders, then files, each by name; names that begin with a dot come last
  size_t left_out = 0;               // files that the filter hides
  bool cut = false;                  // there are more than kMostEntries
  std::string problem;               // why it cannot be read, as a sentence; else empty
};

inline constexpr size_t kMostEntries = 2000;

/// Reads a folder. Never throws: what cannot be read is said in `problem`.
FolderList list_folder(const std::filesystem::path& folder, PathFilter filter);

/// Whether a folder is that of a Hugging Face model, or one of the cache.
bool holds_a_model(const std::filesystem::path& folder);

/// Why a path cannot be chosen, as a sentence with the path: nothing is there, it may not be read, or it is not what is
/// wanted. Empty where it can.
std::string path_obstacle(const std::filesystem::path& path, PathFilter filter);

// Looks for models on the disk on a thread of its own: a network folder or a sleeping disk may take seconds, and the
// window must go on drawing meanwhile.

struct ModelSearchRequest {
  std::string target;               // path of the model that drafters are needed for; may be empty
  std::vector<std::string> recent;  // paths of models that were opened
  std::string standard = {};        // path of the model that comes with the set-up; may be empty
};

struct ModelSearchResult {
  std::string target;
  std::vector<FoundModel> found;
  std::vector<DrafterCandidate> candidates;  // drafters checked against `target`
  std::string problem;                       // why the search failed, as a sentence; else empty
};

/// Searches the Hugging Face cache, what other programs keep, the recent models, the folder of the target and the
/// drafter that comes with Canopy. A model is listed once, by whatever paths it is reached. Once stop is requested it
/// returns what it has found so far.
ModelSearchResult search_models(const ModelSearchRequest& request, const std::stop_token& stop);

using ModelLister = std::function<ModelSearchResult(const ModelSearchRequest&, const std::stop_token&)>;

/// Searches on a thread of its own.
class ModelSearch {
 public:
  explicit ModelSearch(ModelLister lister = search_models);

  /// `wake` is called on the search's thread when take() has a result. Call before start().
  void set_wake(std::function<void()> wake) { answers_.set_wake(std::move(wake)); }

  /// Starts a search and returns at once. Of several requests that wait, only the last one is carried out.
  void start(ModelSearchRequest request) { answers_.ask(std::move(request)); }

  /// The result of the last request; each result is returned once.
  std::optional<ModelSearchResult> take();

 private:
  BackgroundAnswers<ModelSearchRequest, ModelSearchResult> answers_;
};

}  // namespace canopy::app
