#pragma once
// Looking for models on the disk, on a thread of its own: a folder on a network or a sleeping disk may take seconds,
// and the window goes on drawing meanwhile.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "app/models/model_finder.h"

namespace canopy::app {

struct ModelSearchRequest {
  std::string target;               // path of the model that drafters are wanted for; may be empty
  std::vector<std::string> recent;  // paths of models that were opened
};

struct ModelSearchResult {
  std::string target;
  std::vector<FoundModel> found;
  std::vector<DrafterCandidate> candidates;  // for target
  std::string problem;                       // why the search failed, as a sentence; else empty
};

/// The cache of Hugging Face, the recent models, the drafters beside the target and the one that comes with Canopy.
/// Ends early, with what there is, once stop is requested.
ModelSearchResult search_models(const ModelSearchRequest& request, const std::stop_token& stop);

using ModelLister = std::function<ModelSearchResult(const ModelSearchRequest&, const std::stop_token&)>;

class ModelSearch {
 public:
  explicit ModelSearch(ModelLister lister = search_models);
  /// Asks a search under way to stop, and waits for it a second: a folder that does not answer must not keep a window
  /// from closing. What hangs longer ends with the process.
  ~ModelSearch();
  ModelSearch(const ModelSearch&) = delete;
  ModelSearch& operator=(const ModelSearch&) = delete;

  /// Called from the search's thread when there is something to take. Call before start().
  void set_wake(std::function<void()> wake);

  /// Returns at once. Of several requests that wait the last one counts.
  void start(ModelSearchRequest request);

  /// The result of the last request, once.
  std::optional<ModelSearchResult> take();

 private:
  struct Shared;  // between the window and the thread, which may outlive this
  static void work(Shared& shared, const std::stop_token& stop);

  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace canopy::app
