#pragma once
// Looks for models on the disk on a thread of its own: a network folder or a sleeping disk may take seconds, and the
// window must go on drawing meanwhile.

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/base/background_answers.h"
#include "app/models/model_finder.h"

namespace canopy::app {

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

/// Searches the Hugging Face cache, the recent models, the folder of the target and the drafter that comes with Canopy.
/// A model is listed once, by whatever paths it is reached.
/// Once stop is requested it returns what it has found so far.
ModelSearchResult search_models(const ModelSearchRequest& request, const std::stop_token& stop);

using ModelLister = std::function<ModelSearchResult(const ModelSearchRequest&, const std::stop_token&)>;

/// Searches on a thread of its own.
class ModelSearch {
 public:
  explicit ModelSearch(ModelLister lister = search_models);

  /// `wake` is called on the search's thread when take() has a result. Call before start().
  void set_wake(std::function<void()> wake);

  /// Starts a search and returns at once. Of several requests that wait, only the last one is carried out.
  void start(ModelSearchRequest request);

  /// The result of the last request; each result is returned once.
  std::optional<ModelSearchResult> take();

 private:
  BackgroundAnswers<ModelSearchRequest, ModelSearchResult> answers_;
};

}  // namespace canopy::app
