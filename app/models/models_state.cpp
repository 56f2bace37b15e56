#include "app/models/models_state.h"

#include <algorithm>
#include <utility>

#include "app/base/choices.h"

namespace canopy::app {
namespace {

void remember_test(ModelsState& state, const ModelReady& ready) {
  if (ready.self_test == SelfTest::not_run) return;
  std::erase_if(state.device_tests,
                [&](const DeviceTest& t) { return t.device == ready.device && t.driver == ready.driver; });
  state.device_tests.insert(state.device_tests.begin(),
                            {ready.device, ready.driver, ready.self_test == SelfTest::passed, ready.self_test_note});
  if (state.device_tests.size() > kKeptDeviceTests) state.device_tests.resize(kKeptDeviceTests);
}

}  // namespace

void update(ModelsState& state, const Event& event) {
  if (const auto* ready = std::get_if<ModelReady>(&event)) {
    state.memory = ready->memory;
    remember_test(state, *ready);
  }
  if (const auto* memory = std::get_if<MemoryUse>(&event)) state.memory = *memory;
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
  if (const auto* threads = std::get_if<ChooseThreads>(&command))
    state.threads = std::min(threads->count, kMostThreads);
  if (const auto* idle = std::get_if<ReleaseWhenIdle>(&command))
    state.idle_minutes = std::min(idle->minutes, kMostIdleMinutes);
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
  load.threads = state.threads;
}

ModelSearchRequest begin_search(ModelsState& state, const std::string& target) {
  state.looking = true;
  return {target, state.recent};
}

void end_search(ModelsState& state, ModelSearchResult result) {
  state.found = std::move(result.found);
  state.candidates = std::move(result.candidates);
  state.candidates_for = std::move(result.target);
  state.look_problem = std::move(result.problem);
  state.looking = false;
  state.looked = true;
}

const DeviceTest* test_of(const ModelsState& state, const DeviceChoice& device) {
  const auto found = std::ranges::find_if(
      state.device_tests, [&](const DeviceTest& t) { return t.device == device.name && t.driver == device.driver; });
  return found == state.device_tests.end() ? nullptr : &*found;
}

}  // namespace canopy::app
