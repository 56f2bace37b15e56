#include "app/state/sweep_files.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "engine/base/error.h"
#include "engine/comparison/prompt_file.h"
#include "engine/comparison/sweep_file.h"
#include "engine/comparison/sweep_journal.h"
#include "engine/comparison/sweep_prompts.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

/// The file, or what its journal has of a measurement that was not finished.
Sweep read_kept(const std::string& path) {
  if (std::optional<Sweep> unfinished = unfinished_sweep(path)) return *std::move(unfinished);
  return read_sweep(path);
}

std::vector<ComparisonPrompt> as_chats(const std::vector<MeasuredPrompt>& measured) {
  std::vector<ComparisonPrompt> prompts;
  for (const MeasuredPrompt& prompt : measured)
    prompts.push_back({prompt.id, prompt.category, {{"user", prompt.text}}});
  return prompts;
}

/// What it takes to go on with a sweep.
void find_prompts(SweepFileResult& result, const SweepPlaces& places) {
  std::vector<MeasuredPrompt> known;
  try {
    if (!places.prompts.empty()) known = read_all_prompts({places.prompts});
  } catch (const Error&) {  // said of the list; they may lie beside the sweep
  }
  try {
    result.prompts = as_chats(prompts_of(*result.sweep, result.request.path, known));
  } catch (const Error& e) {
    result.prompts_missing = e.what();
  }
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
      if (!places.prompts.empty()) result.bundled = as_chats(read_all_prompts({places.prompts}));
      if (places.prompts.empty()) result.prompts_problem = "Canopy's own prompts are not beside the program.";
    } catch (...) {
      result.prompts_problem = as_error(std::current_exception()).what();
    }
    return result;
  }
  try {
    result.sweep = std::make_shared<const Sweep>(read_kept(request.path));
    const bool opened = request.what == SweepFileRequest::What::open;
    if (opened && !result.sweep->complete()) find_prompts(result, places);
  } catch (...) {
    result.problem = as_error(std::current_exception()).what();
  }
  return result;
}

SweepReader sweep_reader(SweepPlaces places) {
  return {[places = std::move(places)](const SweepFileRequest& request, const std::stop_token&) {
            return read_for(request, places);
          },
          Waiting::is_answered};
}

}  // namespace canopy::app
