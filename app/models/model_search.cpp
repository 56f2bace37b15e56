#include "app/models/model_search.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/paths.h"
#include "engine/format/drafter_file.h"
#include "engine/format/gguf_parts.h"
#include "engine/format/model_paths.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnDrafter = "smollm2-135m-dflash.gguf";  // the one that comes with Canopy
constexpr size_t kMostNeighbours = 100;

/// The file or folder itself, whatever links lead to it, and the first part of a split model; the path as it is where
/// that cannot be told.
fs::path place_of(const fs::path& path) {
  try {
    return fs::weakly_canonical(gguf_part_files(resolve_model_path(path)).front());
  } catch (const std::exception&) {  // a broken link, no permission, a download that was never finished
    return path;
  }
}

void add(std::vector<FoundModel>& found, const fs::path& path) {
  const fs::path place = place_of(path);
  const auto same = [&](const FoundModel& f) { return f.path == path.string() || place_of(f.path) == place; };
  if (std::ranges::any_of(found, same)) return;
  found.push_back(describe_model(path));
}

/// Adds the drafters in the folder of the target, as they are often downloaded into the same folder.
void add_neighbours(std::vector<FoundModel>& found, const fs::path& target, const std::stop_token& stop) {
  std::error_code error;
  size_t seen = 0;
  for (fs::directory_iterator it(target.parent_path(), error), end;
       !error && it != end && seen < kMostNeighbours && !stop.stop_requested(); it.increment(error), ++seen) {
    if (it->path() != target && DrafterFile::is_drafter(it->path())) add(found, it->path());
  }
}

ModelSearchResult look(const ModelLister& lister, const ModelSearchRequest& request, const std::stop_token& stop) {
  try {
    return lister(request, stop);
  } catch (...) {
    ModelSearchResult failed;
    failed.target = request.target;
    failed.problem = as_error(std::current_exception()).what();
    return failed;
  }
}

}  // namespace

ModelSearchResult search_models(const ModelSearchRequest& request, const std::stop_token& stop) {
  ModelSearchResult result;
  result.target = request.target;
  result.found = models_in_cache(hugging_face_cache(), stop);
  for (const std::string& path : request.recent) {
    if (stop.stop_requested()) return result;
    add(result.found, path);
  }
  if (const auto own = find_asset(kOwnDrafter)) add(result.found, *own);
  for (FoundModel& each : result.found)
    each.standard = !request.standard.empty() && place_of(each.path) == place_of(request.standard);
  if (request.target.empty()) return result;
  add_neighbours(result.found, request.target, stop);
  if (!stop.stop_requested()) result.candidates = pair_drafters(request.target, result.found);
  return result;
}

ModelSearch::ModelSearch(ModelLister lister)
    : answers_([lister = std::move(lister)](const ModelSearchRequest& request,
                                            const std::stop_token& stop) { return look(lister, request, stop); },
               Waiting::is_dropped) {}

void ModelSearch::set_wake(std::function<void()> wake) {
  answers_.set_wake(std::move(wake));
}

void ModelSearch::start(ModelSearchRequest request) {
  answers_.ask(std::move(request));
}

std::optional<ModelSearchResult> ModelSearch::take() {
  std::vector<ModelSearchResult> results = answers_.take();
  if (results.empty()) return std::nullopt;
  return std::move(results.back());
}

}  // namespace canopy::app
