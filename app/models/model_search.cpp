#include "app/models/model_search.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/paths.h"
#include "engine/format/drafter_file.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnDrafter = "smollm2-135m-dflash.gguf";  // the one that comes with Canopy
constexpr size_t kMostNeighbours = 100;

void add(std::vector<FoundModel>& found, const fs::path& path) {
  if (std::ranges::any_of(found, [&](const FoundModel& f) { return f.path == path.string(); })) return;
  found.push_back(describe_model(path));
}

/// Drafters are often downloaded beside their model.
void add_neighbours(std::vector<FoundModel>& found, const fs::path& target, const std::stop_token& stop) {
  std::error_code error;
  size_t seen = 0;
  for (fs::directory_iterator it(target.parent_path(), error), end;
       !error && it != end && seen < kMostNeighbours && !stop.stop_requested(); it.increment(error), ++seen) {
    if (it->path() != target && DrafterFile::is_drafter(it->path())) add(found, it->path());
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
  if (request.target.empty()) return result;
  add_neighbours(result.found, request.target, stop);
  if (!stop.stop_requested()) result.candidates = pair_drafters(request.target, result.found);
  return result;
}

ModelSearch::~ModelSearch() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void ModelSearch::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void ModelSearch::start(ModelSearchRequest request) {
  {
    const std::lock_guard lock(mutex_);
    request_ = std::move(request);
    result_.reset();
  }
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  asked_.notify_one();
}

std::optional<ModelSearchResult> ModelSearch::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(result_, std::nullopt);
}

ModelSearchResult ModelSearch::look(const ModelSearchRequest& request, const std::stop_token& stop) const {
  try {
    return lister_(request, stop);
  } catch (const std::exception& e) {
    ModelSearchResult failed;
    failed.target = request.target;
    failed.problem = e.what();
    return failed;
  }
}

void ModelSearch::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (asked_.wait(lock, stop, [&] { return request_.has_value(); })) {
    const ModelSearchRequest request = *std::exchange(request_, std::nullopt);
    lock.unlock();
    ModelSearchResult result = look(request, stop);
    lock.lock();
    if (request_ || stop.stop_requested()) continue;  // somebody wants to know something else by now
    result_ = std::move(result);
    if (wake_) wake_();
  }
}

}  // namespace canopy::app
