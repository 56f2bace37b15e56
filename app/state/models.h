#pragma once
// The user's choices about models, what is known of them and of the device, the memory that they take, and their
// release after idle minutes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/state/model_finder.h"
#include "engine/session/engine_client.h"

namespace canopy::app {

// How much of a device's memory a target and its drafter take, and whether it fits. Pure arithmetic on bytes: the bar
// in the top row, the table behind it and the choice of a context use it.

enum class MemoryPart { target, drafter, cache, states, tree, other_apps };

enum class MemoryFit {
  fits,
  tight,     // it fits with little to spare: another program may push it out
  wont_fit,  // the device has less than this
};

/// The device memory that this program may use now.
struct MemoryRoom {
  uint64_t budget = 0;  // bytes that this program may hold, including those it holds
  uint64_t others = 0;  // bytes of the budget that other programs hold
};

struct MemoryRow {
  MemoryPart part;
  uint64_t bytes = 0;
};

struct MemoryTable {
  std::vector<MemoryRow> rows;  // in the order of the bar, without empty parts
  uint64_t budget = 0;
  uint64_t used = 0;  // bytes of all rows together
  MemoryFit fit = MemoryFit::fits;
  bool overridden = false;  // the user chose to load it although it will not fit

  uint64_t bytes_of(MemoryPart part) const;
};

/// The table of a loaded pair of models. With override_refusal, a table that does not fit is marked as overridden, and
/// loading goes on.
MemoryTable memory_table(const MemoryUse& use, bool override_refusal = false);

/// The table of the same pair with another context, in positions: the KV cache grows in proportion.
MemoryTable memory_table_at(const MemoryUse& use, uint64_t context, bool override_refusal = false);

/// The memory of a device after a pair of models that took this was released.
MemoryUse after_release(const MemoryUse& use);

/// The table of the given parts.
MemoryTable memory_table(const std::vector<MemoryRow>& parts, const MemoryRoom& room, bool override_refusal = false);

/// "Fits", "Tight", "Won't fit"
const char* to_string(MemoryFit fit);
/// "Big model", "Drafter", "KV cache", ...
const char* to_string(MemoryPart part);

// The user's choices about models, and what is known of the models on this computer.

inline constexpr size_t kRecentModels = 8;
inline constexpr size_t kKeptDeviceTests = 8;

/// The result of a device's self-test when a model was last loaded there.
struct DeviceTest {
  std::string device, driver;
  bool passed = false;
  std::string note;  // what was compared, or what differed
  bool operator==(const DeviceTest&) const = default;
};

/// A device that the user chose, as it is found again at the next start: its selector may then be another one's.
struct KeptDevice {
  std::string selector, backend, name;  // as DeviceChoice has them; all empty: the best device
  bool operator==(const KeptDevice&) const = default;
};
/// The selector of a kept device now: of two with its name the one that has its selector, too; empty where it is gone
/// or cannot be used.
std::string selector_of(const KeptDevice& kept, const std::vector<DeviceChoice>& devices);

struct ModelsState {
  // What the user chose:
  KeptDevice device;
  std::string drafter;   // path; empty: the one that comes with Canopy, where it fits
  bool draft = true;     // false: without a drafter
  uint32_t context = 0;  // positions; 0: what the model and the memory allow
  bool override_memory = false;
  uint32_t threads = 0;              // of the processor, to kMostThreads; 0: as the program was started
  uint32_t idle_minutes = 0;         // after which the model is released, to kMostIdleMinutes; 0: never
  std::vector<std::string> recent;   // paths of models that were opened, the newest first
  std::string engine_key;            // that engines elsewhere are told; empty: none
  std::string typed_key, typed_for;  // the key that was typed in this session, and the address that it is for

  bool engine_box_shown = false;  // "An engine elsewhere"

  // What is known:
  bool looking = false;  // a search is under way
  bool looked = false;   // a search has ended, so the following fields are valid
  std::string look_problem;
  std::vector<FoundModel> found;
  std::vector<DrafterCandidate> candidates;  // for the model that was open when it began
  MemoryUse memory;                          // of the loaded pair
  std::vector<DeviceTest> device_tests;      // the newest first
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

struct ShowEngineBox {  // asks for the address of an engine elsewhere
  bool shown = true;
};
struct OpenEngine {     // has replies written there
  std::string address;  // "gpu-box:8737", with http:// in front or not
  std::string key;      // empty: that of the settings
};

struct ChooseThreads {  // loads the model again, computed by so many threads of the processor
  uint32_t count = 0;   // 0: as the program was started
};

using ModelsCommand = std::variant<ChooseDrafter, ChooseContext, LookForModels, ReleaseWhenIdle, ChooseThreads,
                                   ShowEngineBox, OpenEngine>;

/// The address as a model is opened by it: without blanks around it, with http:// in front.
std::string engine_address(std::string_view typed);

/// Applies an event of the engine: the memory of the loaded models and the result of the self-test.
void update(ModelsState& state, const Event& event);

/// Applies a choice of the user for the next loads.
void choose(ModelsState& state, const ModelsCommand& command);

/// Puts a model that was opened at the head of the list of recent ones.
void remember_model(ModelsState& state, const std::string& path);

/// Copies the user's choices into the command that loads a model, whose path is there.
void ask_for(const ModelsState& state, LoadModel& load);

/// Marks a search as running and returns its request.
ModelSearchRequest begin_search(ModelsState& state, const std::string& target);

/// Stores the result of a search.
void end_search(ModelsState& state, ModelSearchResult result);

/// The result of the self-test of this device with its present driver; null if it never ran.
const DeviceTest* test_of(const ModelsState& state, const DeviceChoice& device);

// Short texts about a device for lists: memory, driver and result of the self-test.

/// "llvmpipe (LLVM 15.0.6, 256 bits)" -> "llvmpipe": details in brackets are shown in tooltips only.
std::string without_brackets(const std::string& text);

/// "24.0 GiB"; "15.4 GiB shared" where the memory is the processor's; empty where it is not known.
std::string memory_words(const DeviceChoice& device);

/// "CUDA", "Vulkan": how a backend is called, by the devices that it lists.
std::string backend_words(const std::vector<DeviceChoice>& devices, const std::string& backend);

/// "passed the self-test", or that it failed or has not run yet.
std::string self_test_words(const ModelsState& models, const DeviceChoice& device);

/// All of it on one line: "discrete, 24.0 GiB, Vulkan 1.3, radv Mesa 25.2"
std::string device_words(const DeviceChoice& device);

/// Everything that is known, one property on each line, nothing shortened.
std::string device_details(const ModelsState& models, const DeviceChoice& device);

// A model that is released after idle minutes, so that its memory is free for others, and that comes back by itself
// when it is asked something. The engine holds no model meanwhile; ViewModel::model still says what it was.

struct ViewModel;

struct IdleState {
  int64_t since_ms = 0;  // in the time of ChatState::now_ms: the last time that anybody or anything was at work
  uint32_t after = 0;    // minutes after which the model was released
  std::optional<LoadModel> opened;  // what brings the released model back; none until the engine has told
  std::optional<Generate> held;     // the reply that waits for the model
};

/// The present moment counts as work: the idle minutes begin anew. Events of the engine and commands of the user do
/// this by themselves; call it for what is neither, such as typing.
void note_work(ViewModel& view);

/// When the model is to be released if nothing happens, in the time of ChatState::now_ms. None where it is not: the
/// user did not ask for it, no model is loaded, or something is under way that needs it. A recording that waits for the
/// next reply needs it too.
std::optional<int64_t> release_due_ms(const ViewModel& view);

/// Likewise, when costs that are stale are measured by themselves. Not where the user does not want it, and not where
/// the next reply would then wait for the text so far to be read again.
std::optional<int64_t> remeasure_due_ms(const ViewModel& view);

/// The commands that are due for the engine: the release when its time has come, a measurement likewise, and for a
/// reply that waits the load and, once that is done, the reply. Call after events, after commands and when time has
/// passed.
std::vector<Command> take_due_commands(ViewModel& view);

/// Takes the replies that a released model was asked for out of the commands, to be written when it is back.
void hold_replies(ViewModel& view, std::vector<Command>& commands);

/// Ends the reply that waits for the model, if there is one, with a card to ask for it again. The question stays.
void give_up_held(ViewModel& view);

void on_released(ViewModel& view, const ModelReleased& event);

/// "Released after 15 idle minutes; your next message loads it again"
std::string released_words(const ViewModel& view);

}  // namespace canopy::app
