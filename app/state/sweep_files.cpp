#include "app/state/sweep_files.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <utility>

#include "engine/base/error.h"
#include "engine/comparison/prompt_file.h"
#include "engine/comparison/sweep_file.h"
#include "engine/comparison/sweep_journal.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::seconds kReaderPatience{1};

/// The file, or what its journal has of a measurement that was not finished.
Sweep read_kept(const std::string& path) {
  if (std::optional<Sweep> unfinished = unfinished_sweep(path)) return *std::move(unfinished);
  return read_sweep(path);
}

std::vector<ComparisonPrompt> read_bundled(const std::string& folder) {
  std::vector<ComparisonPrompt> prompts;
  for (const MeasuredPrompt& prompt : read_all_prompts({folder}))
    prompts.push_back({prompt.id, prompt.category, {{"user", prompt.text}}});
  return prompts;
}

}  // namespace

std::string user_sweep_folder() {
  try {
    return sweep_folder().string();
  } catch (const Error&) {
    return "";
  }
}

SweepFileResult read_for(const SweepFileRequest& request, const SweepPlaces& places) {
  SweepFileResult result;
  result.request = request;
  if (!places.folder.empty()) result.kept = kept_sweeps(places.folder);
  if (!places.recorded.empty()) result.recorded = kept_sweeps(places.recorded);
  if (request.what == SweepFileRequest::What::list) {
    try {
      if (!places.prompts.empty()) result.bundled = read_bundled(places.prompts);
      if (places.prompts.empty()) result.prompts_problem = "Canopy's own prompts are not beside the program.";
    } catch (const std::exception& e) {
      result.prompts_problem = e.what();
    }
    return result;
  }
  try {
    result.sweep = std::make_shared<const Sweep>(read_kept(request.path));
  } catch (const std::exception& e) {
    result.problem = e.what();
  }
  return result;
}

struct SweepReader::Shared {
  SweepPlaces places;
  std::mutex mutex;
  std::condition_variable_any asked, ended;
  std::function<void()> wake;
  std::deque<SweepFileRequest> requests;
  std::vector<SweepFileResult> results;
  bool running = false;  // the thread is
};

SweepReader::SweepReader(SweepPlaces places) : shared_(std::make_shared<Shared>()) {
  shared_->places = std::move(places);
}

SweepReader::~SweepReader() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  std::unique_lock lock(shared_->mutex);
  shared_->wake = {};
  const bool ended = shared_->ended.wait_for(lock, kReaderPatience, [&] { return !shared_->running; });
  lock.unlock();
  if (ended)
    thread_.join();
  else
    thread_.detach();
}

void SweepReader::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = std::move(wake);
}

void SweepReader::start(SweepFileRequest request) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->requests.push_back(std::move(request));
    if (!std::exchange(shared_->running, true))
      thread_ = std::jthread([shared = shared_](const std::stop_token& stop) { work(*shared, stop); });
  }
  shared_->asked.notify_one();
}

std::vector<SweepFileResult> SweepReader::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->results, {});
}

void SweepReader::work(Shared& shared, const std::stop_token& stop) {
  std::unique_lock lock(shared.mutex);
  while (shared.asked.wait(lock, stop, [&] { return !shared.requests.empty(); })) {
    const SweepFileRequest request = std::move(shared.requests.front());
    shared.requests.pop_front();
    lock.unlock();
    SweepFileResult result = read_for(request, shared.places);
    lock.lock();
    shared.results.push_back(std::move(result));
    if (shared.wake) shared.wake();
  }
  shared.running = false;
  shared.ended.notify_all();
}

}  // namespace canopy::app
