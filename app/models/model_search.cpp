#include "app/models/model_search.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
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
constexpr std::chrono::seconds kPatience{1};  // how long closing the window waits for a search

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
  } catch (const std::exception& e) {
    ModelSearchResult failed;
    failed.target = request.target;
    failed.problem = e.what();
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

struct ModelSearch::Shared {
  ModelLister lister;
  std::mutex mutex;
  std::condition_variable_any asked, ended;
  std::function<void()> wake;
  std::optional<ModelSearchRequest> request;
  std::optional<ModelSearchResult> result;
  bool running = false;  // the search thread is running
};

ModelSearch::ModelSearch(ModelLister lister) : shared_(std::make_shared<Shared>()) {
  shared_->lister = std::move(lister);
}

ModelSearch::~ModelSearch() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  std::unique_lock lock(shared_->mutex);
  shared_->wake = {};
  const bool ended = shared_->ended.wait_for(lock, kPatience, [&] { return !shared_->running; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void ModelSearch::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = std::move(wake);
}

void ModelSearch::start(ModelSearchRequest request) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->request = std::move(request);
    shared_->result.reset();
    if (!std::exchange(shared_->running, true))
      thread_ = std::jthread([shared = shared_](const std::stop_token& stop) { work(*shared, stop); });
  }
  shared_->asked.notify_one();
}

std::optional<ModelSearchResult> ModelSearch::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->result, std::nullopt);
}

void ModelSearch::work(Shared& shared, const std::stop_token& stop) {
  std::unique_lock lock(shared.mutex);
  while (shared.asked.wait(lock, stop, [&] { return shared.request.has_value(); })) {
    const ModelSearchRequest request = *std::exchange(shared.request, std::nullopt);
    lock.unlock();
    ModelSearchResult result = look(shared.lister, request, stop);
    lock.lock();
    // A newer request is waiting: this result is not needed any more.
    if (shared.request || stop.stop_requested()) continue;
    shared.result = std::move(result);
    if (shared.wake) shared.wake();
  }
  shared.running = false;
  shared.ended.notify_all();
}

}  // namespace canopy::app
