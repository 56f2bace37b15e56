#pragma once
// The user's choices about models, and what is known of the models on this computer.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/models/memory_table.h"
#include "app/models/model_search.h"

namespace canopy::app {

inline constexpr size_t kRecentModels = 8;
inline constexpr size_t kKeptDeviceTests = 8;

/// The result of a device's self-test when a model was last loaded there.
struct DeviceTest {
  std::string device, driver;
  bool passed = false;
  std::string note;  // what was compared, or what differed
  bool operator==(const DeviceTest&) const = default;
};

struct ModelsState {
  // What the user chose:
  std::string drafter;   // path; empty: the one that comes with Canopy, where it fits
  bool draft = true;     // false: without a drafter
  uint32_t context = 0;  // positions; 0: what the model and the memory allow
  bool override_memory = false;
  uint32_t threads = 0;             // of the processor, to kMostThreads; 0: as the program was started
  uint32_t idle_minutes = 0;        // after which the model is released, to kMostIdleMinutes; 0: never
  std::vector<std::string> recent;  // paths of models that were opened, the newest first

  // What is known:
  bool looking = false;  // a search is under way
  bool looked = false;   // a search has ended, so the following fields are valid
  std::string look_problem;
  std::vector<FoundModel> found;
  std::vector<DrafterCandidate> candidates;  // for the model of `candidates_for`
  std::string candidates_for;
  MemoryUse memory;                      // of the loaded pair
  std::vector<DeviceTest> device_tests;  // the newest first
};

struct ChooseDrafter {  // loads the model again with this drafter
  std::string path;     // empty: the default drafter
  bool draft = true;    // false: without a drafter
};
struct ChooseContext {  // loads the model again with this context
  uint32_t positions = 0;
  bool override_memory = false;  // load it although it will not fit
};
struct LookForModels {};  // searches this computer again
struct ReleaseWhenIdle {
  uint32_t minutes = 0;  // 0: never
};

struct ChooseThreads {  // loads the model again, computed by so many threads of the processor
  uint32_t count = 0;   // 0: as the program was started
};

using ModelsCommand = std::variant<ChooseDrafter, ChooseContext, LookForModels, ReleaseWhenIdle, ChooseThreads>;

/// Applies an event of the engine: the memory of the loaded models and the result of the self-test.
void update(ModelsState& state, const Event& event);

/// Applies a choice of the user for the next loads.
void choose(ModelsState& state, const ModelsCommand& command);

/// Puts a model that was opened at the head of the list of recent ones.
void remember_model(ModelsState& state, const std::string& path);

/// Copies the user's choices into the command that loads a model.
void ask_for(const ModelsState& state, LoadModel& load);

/// Marks a search as running and returns its request.
ModelSearchRequest begin_search(ModelsState& state, const std::string& target);

/// Stores the result of a search.
void end_search(ModelsState& state, ModelSearchResult result);

/// The result of the self-test of this device with its present driver; null if it never ran.
const DeviceTest* test_of(const ModelsState& state, const DeviceChoice& device);

}  // namespace canopy::app
