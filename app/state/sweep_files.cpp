#include "app/state/sweep_files.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "engine/base/error.h"
#include "engine/comparison/prompt_file.h"
#include "engine/comparison/sweep_file.h"
#include "engine/comparison/sweep_journal.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

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

SweepReader sweep_reader(SweepPlaces places) {
  return {[places = std::move(places)](const SweepFileRequest& request, const std::stop_token&) {
            return read_for(request, places);
          },
          Waiting::is_answered};
}

}  // namespace canopy::app
