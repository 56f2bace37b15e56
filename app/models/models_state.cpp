#include "app/models/models_state.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

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
void add_neighbours(std::vector<FoundModel>& found, const fs::path& target) {
  std::error_code error;
  size_t seen = 0;
  for (fs::directory_iterator it(target.parent_path(), error), end; !error && it != end && seen < kMostNeighbours;
       it.increment(error), ++seen) {
    if (it->path() != target && DrafterFile::is_drafter(it->path())) add(found, it->path());
  }
}

}  // namespace

void update(ModelsState& state, const Event& event) {
  if (const auto* ready = std::get_if<ModelReady>(&event)) state.memory = ready->memory;
  if (const auto* memory = std::get_if<MemoryUse>(&event)) state.memory = *memory;
  if (const auto* recording = std::get_if<Recording>(&event)) state.recording = *recording;
}

void choose(ModelsState& state, const ModelsCommand& command) {
  if (const auto* drafter = std::get_if<ChooseDrafter>(&command)) {
    state.drafter = drafter->path;
    state.draft = drafter->draft;
  }
  if (const auto* context = std::get_if<ChooseContext>(&command)) {
    state.context = context->positions;
    state.override_memory = context->override_memory;
  }
}

void remember_model(ModelsState& state, const std::string& path) {
  std::erase(state.recent, path);
  state.recent.insert(state.recent.begin(), path);
  if (state.recent.size() > kRecentModels) state.recent.resize(kRecentModels);
}

void ask_for(const ModelsState& state, LoadModel& load) {
  load.drafter = state.drafter;
  load.draft = state.draft;
  load.context = state.context;
}

void look_for_models(ModelsState& state, const std::string& target) {
  state.found = models_in_cache(hugging_face_cache());
  for (const std::string& path : state.recent) add(state.found, path);
  if (const auto own = find_asset(kOwnDrafter)) add(state.found, *own);
  if (!target.empty()) add_neighbours(state.found, target);
  state.candidates = target.empty() ? std::vector<DrafterCandidate>() : pair_drafters(target, state.found);
  state.candidates_for = target;
  state.looked = true;
}

}  // namespace canopy::app
