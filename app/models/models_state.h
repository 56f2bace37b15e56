#pragma once
// What the user chose about models, and what is known of those on this computer.

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

/// What a device's self-test said when a model was last loaded there.
struct DeviceTest {
  std::string device, driver;
  bool passed = false;
  std::string note;  // what was compared, or what differed
  bool operator==(const DeviceTest&) const = default;
};

struct ModelsState {
  // Chosen:
  std::string drafter;   // path; empty: the one that comes with Canopy, where it fits
  bool draft = true;     // false: none at all
  uint32_t context = 0;  // positions; 0: what the model and the memory allow
  bool override_memory = false;
  std::vector<std::string> recent;  // paths of models that were opened, the last one first

  // Known:
  bool looking = false;  // a search is under way
  bool looked = false;   // for what follows
  std::string look_problem;
  std::vector<FoundModel> found;
  std::vector<DrafterCandidate> candidates;  // for the model of `candidates_for`
  std::string candidates_for;
  MemoryUse memory;                      // of the loaded pair
  std::vector<DeviceTest> device_tests;  // the last one first
};

struct ChooseDrafter {  // loads the model with it
  std::string path;     // empty: the usual one
  bool draft = true;    // false: without any
};
struct ChooseContext {  // loads the model with it
  uint32_t positions = 0;
  bool override_memory = false;  // although it will not fit
};
struct LookForModels {};  // on this computer, anew

using ModelsCommand = std::variant<ChooseDrafter, ChooseContext, LookForModels>;

/// Folds in what the engine says of memory.
void update(ModelsState& state, const Event& event);

/// Folds in what its user chose of loads to come.
void choose(ModelsState& state, const ModelsCommand& command);

/// A model was opened: it heads the list of recent ones.
void remember_model(ModelsState& state, const std::string& path);

/// What was asked of a load, as the engine takes it.
void ask_for(const ModelsState& state, LoadModel& load);

/// A search begins: what it is to look for.
ModelSearchRequest begin_search(ModelsState& state, const std::string& target);

/// What a search found.
void end_search(ModelsState& state, ModelSearchResult result);

/// What the self-test said of a device with the driver it has now; null where it never ran.
const DeviceTest* test_of(const ModelsState& state, const DeviceChoice& device);

}  // namespace canopy::app
