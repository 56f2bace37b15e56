#include "app/state/models.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "app/state/chat_update.h"
#include "app/state/settings.h"
#include "app/state/view_model.h"
#include "app/state/words.h"
#include "engine/base/figures.h"

namespace canopy::app {
namespace {

constexpr double kTightShare = 0.9;  // of the budget; beyond it drivers begin to swap memory out

uint64_t capped_sum(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

/// Counts memory that is neither ours nor available as held by other programs.
MemoryRoom room_of(const MemoryUse& use) {
  const uint64_t ours = capped_sum(use.total(), use.available);
  return {use.budget, use.budget > ours ? use.budget - ours : 0};
}

std::vector<MemoryRow> parts_of(const MemoryUse& use, uint64_t cache) {
  // Working memory depends on the rows of a pass, so it is shown together with the tree.
  const uint64_t tree = capped_sum(use.tree, capped_sum(use.working, use.reserve));
  return {{MemoryPart::target, use.weights},
          {MemoryPart::drafter, use.drafter},
          {MemoryPart::cache, cache},
          {MemoryPart::states, use.states},
          {MemoryPart::tree, tree}};
}

}  // namespace

uint64_t MemoryTable::bytes_of(MemoryPart part) const {
  for (const MemoryRow& row : rows)
    if (row.part == part) return row.bytes;
  return 0;
}

MemoryTable memory_table(const std::vector<MemoryRow>& parts, const MemoryRoom& room, bool override_refusal) {
  MemoryTable table;
  table.budget = room.budget;
  auto add = [&](MemoryPart part, uint64_t bytes) {
    if (bytes == 0) return;
    table.rows.push_back({part, bytes});
    table.used = capped_sum(table.used, bytes);
  };
  for (const MemoryRow& row : parts) add(row.part, row.bytes);
  add(MemoryPart::other_apps, room.others);
  if (table.used > table.budget)
    table.fit = MemoryFit::wont_fit;
  else if (static_cast<double>(table.used) > kTightShare * static_cast<double>(table.budget))
    table.fit = MemoryFit::tight;
  table.overridden = override_refusal && table.fit == MemoryFit::wont_fit;
  return table;
}

MemoryTable memory_table(const MemoryUse& use, bool override_refusal) {
  return memory_table(parts_of(use, use.cache), room_of(use), override_refusal);
}

MemoryTable memory_table_at(const MemoryUse& use, uint64_t context, bool override_refusal) {
  const double share = use.context == 0 ? 1 : static_cast<double>(context) / static_cast<double>(use.context);
  const auto cache = static_cast<uint64_t>(static_cast<double>(use.cache) * share);
  return memory_table(parts_of(use, cache), room_of(use), override_refusal);
}

MemoryUse after_release(const MemoryUse& use) {
  MemoryUse left;
  left.budget = use.budget;
  left.available = capped_sum(use.available, use.total());
  return left;
}

const char* to_string(MemoryFit fit) {
  switch (fit) {
    case MemoryFit::fits: return "Fits";
    case MemoryFit::tight: return "Tight";
    case MemoryFit::wont_fit: return "Won't fit";
  }
  return "";
}

const char* to_string(MemoryPart part) {
  switch (part) {
    case MemoryPart::target: return "Big model";
    case MemoryPart::drafter: return "Drafter";
    case MemoryPart::cache: return "KV cache";
    case MemoryPart::states: return "States of recurrent layers";
    case MemoryPart::tree: return "Tree and working memory";
    case MemoryPart::other_apps: return "Other apps";
  }
  return "";
}

namespace {

void remember_test(ModelsState& state, const ModelReady& ready) {
  if (ready.self_test == SelfTest::not_run || !ready.server.empty()) return;
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
  if (const auto* box = std::get_if<ShowEngineBox>(&command)) state.engine_box_shown = box->shown;
  if (const auto* engine = std::get_if<OpenEngine>(&command); engine && !engine->key.empty()) {
    state.typed_key = engine->key;
    state.typed_for = engine_address(engine->address);
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

std::string engine_address(std::string_view typed) {
  const size_t begin = typed.find_first_not_of(" \t\r\n"), end = typed.find_last_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  const std::string address(typed.substr(begin, end - begin + 1));
  return address.find("://") == std::string::npos ? "http://" + address : address;
}

void ask_for(const ModelsState& state, LoadModel& load) {
  load.drafter = state.drafter;
  load.draft = state.draft;
  load.context = state.context;
  load.threads = state.threads;
  if (is_server_address(load.path)) load.key = load.path == state.typed_for ? state.typed_key : state.engine_key;
}

ModelSearchRequest begin_search(ModelsState& state, const std::string& target) {
  state.looking = true;
  // What engines elsewhere have is no file of this computer.
  ModelSearchRequest request{is_server_address(target) ? "" : target, state.recent};
  std::erase_if(request.recent, [](const std::string& path) { return is_server_address(path); });
  return request;
}

void end_search(ModelsState& state, ModelSearchResult result) {
  state.found = std::move(result.found);
  state.candidates = std::move(result.candidates);
  state.look_problem = std::move(result.problem);
  state.looking = false;
  state.looked = true;
}

const DeviceTest* test_of(const ModelsState& state, const DeviceChoice& device) {
  const auto found = std::ranges::find_if(
      state.device_tests, [&](const DeviceTest& t) { return t.device == device.name && t.driver == device.driver; });
  return found == state.device_tests.end() ? nullptr : &*found;
}

namespace {

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + ", " + b;
}

}  // namespace

std::string selector_of(const KeptDevice& kept, const std::vector<DeviceChoice>& devices) {
  const DeviceChoice* found = nullptr;
  for (const DeviceChoice& each : devices) {
    const bool same = each.usable && !kept.name.empty() && each.backend == kept.backend && each.name == kept.name;
    if (same && (!found || each.selector == kept.selector)) found = &each;
  }
  return found ? found->selector : "";
}

std::string without_brackets(const std::string& text) {
  const size_t bracket = text.find(" (");
  return bracket == 0 || bracket == std::string::npos ? text : text.substr(0, bracket);
}

std::string memory_words(const DeviceChoice& device) {
  if (device.memory_bytes == 0) return "";
  const bool shared = device.type == "integrated" || is_on_processor(device.type);
  return byte_figures(device.memory_bytes) + (shared ? " shared" : "");
}

std::string backend_words(const std::vector<DeviceChoice>& devices, const std::string& backend) {
  const auto found = std::ranges::find(devices, backend, &DeviceChoice::backend);
  return found == devices.end() ? backend : found->backend_title;
}

std::string self_test_words(const ModelsState& models, const DeviceChoice& device) {
  const bool software = device.type == "software";
  const DeviceTest* test = test_of(models, device);
  if (!test) return software ? "works, slow; not tested yet" : "self-test with the first model";
  if (!test->passed) return "failed the self-test";
  return software ? "works, slow; passed the self-test" : "passed the self-test";
}

std::string device_words(const DeviceChoice& device) {
  return joined(joined(device.type == "cpu" ? "processor" : device.type, memory_words(device)), device.words);
}

std::string device_details(const ModelsState& models, const DeviceChoice& device) {
  std::string text = device.name;
  if (!device.usable) return text + "\nCannot be used: " + device.reason;
  text += "\n" + joined(device.type == "software" ? "A software device"
                        : device.type == "cpu"    ? "The processor"
                                                  : device.type,
                        memory_words(device));
  if (!device.details.empty()) text += "\n" + device.details;
  if (!device.same_gpu.empty()) text += "\nThe same GPU as " + device.same_gpu;
  const DeviceTest* test = test_of(models, device);
  return text + "\n" + (test ? test->note : "Every model that is opened begins with a self-test of exactness.");
}

namespace {

constexpr int64_t kMinuteMs = 60'000;

bool is_busy(const ViewModel& view) {
  return view.busy() || view.calibration.busy() || view.report.busy() || view.comparison.busy() ||
         view.checks.check.running() || view.recording.running() || view.served.busy();
}

/// The load or the reply of the question that waits, as far as it can be asked for now.
std::optional<Command> next_for_held(ViewModel& view) {
  IdleState& idle = view.idle;
  if (view.model_state == ModelState::loading) return std::nullopt;
  if (view.model_state != ModelState::released) return *std::exchange(idle.held, std::nullopt);
  if (!idle.opened) return std::nullopt;
  begin_load(view, idle.opened->path);
  return *idle.opened;
}

}  // namespace

void note_work(ViewModel& view) {
  view.idle.since_ms = view.chat.now_ms;
}

std::optional<int64_t> release_due_ms(const ViewModel& view) {
  const uint32_t minutes = view.models.idle_minutes;
  const bool needed = is_busy(view) || view.served.told.active;  // clients may ask at any time
  if (minutes == 0 || view.model_state != ModelState::ready || needed) return std::nullopt;
  return view.idle.since_ms + minutes * kMinuteMs;
}

namespace {

/// What reading the text in the cache again would take, by what the last reply's prompt took; 0 where it is empty.
double reread_ms(const ViewModel& view) {
  const Message* reply = view.last_reply();
  if (view.context_used == 0) return 0;
  if (!reply || !reply->result) return std::numeric_limits<double>::infinity();
  const ReplyFinished& result = *reply->result;
  const uint32_t read = result.prompt_tokens - std::min(result.reused_tokens, result.prompt_tokens);
  if (read == 0 || result.prefill_ms <= 0) return std::numeric_limits<double>::infinity();
  return result.prefill_ms / read * view.context_used;
}

}  // namespace

std::optional<int64_t> remeasure_due_ms(const ViewModel& view) {
  if (!view.measures_when_idle || view.model_state != ModelState::ready || is_busy(view) || view.verify.running ||
      view.what_if.densifying)
    return std::nullopt;
  if (view.calibration.is_stale() && reread_ms(view) > kMostRereadMs) return std::nullopt;
  return remeasure_due_ms(view.calibration, view.idle.since_ms);
}

std::vector<Command> take_due_commands(ViewModel& view) {
  if (view.idle.held) {
    const std::optional<Command> next = next_for_held(view);
    return next ? std::vector<Command>{*next} : std::vector<Command>{};
  }
  // A clock that was set back would else put the release off by as much.
  view.idle.since_ms = std::min(view.idle.since_ms, view.chat.now_ms);
  if (const auto measured = remeasure_due_ms(view); measured && view.chat.now_ms >= *measured)
    return {begin_remeasuring(view.calibration, view.chat.now_ms)};
  const std::optional<int64_t> due = release_due_ms(view);
  if (!due || view.chat.now_ms < *due) return {};
  // From now on, not from the engine's answer: what is asked until then comes after the release.
  view.model_state = ModelState::released;
  view.context_used = 0;
  view.idle.after = view.models.idle_minutes;
  view.idle.opened.reset();
  return {ReleaseModel{}};
}

void hold_replies(ViewModel& view, std::vector<Command>& commands) {
  if (view.model_state != ModelState::released) return;
  for (Command& each : commands)
    if (auto* reply = std::get_if<Generate>(&each)) view.idle.held = std::move(*reply);
  std::erase_if(commands, [](const Command& each) { return std::holds_alternative<Generate>(each); });
}

void give_up_held(ViewModel& view) {
  if (!view.idle.held) return;
  view.idle.held.reset();
  end_reply(view, FinishReason::cancelled);
  view.cards.push_back({++view.last_id, true, "Your question was not answered",
                        "The model was not loaded. The question stays in the chat, and you can ask it again.",
                        Card::Action::run_again, false});
}

void on_released(ViewModel& view, const ModelReleased& event) {
  const bool loading = view.model_state == ModelState::loading;
  if (event.opened.path.empty()) {
    view.model.reset();
    if (!loading) view.model_state = ModelState::none;
    return;
  }
  view.idle.opened = event.opened;
  if (!loading) view.model_state = ModelState::released;
}

std::string released_words(const ViewModel& view) {
  return "Released after " + counted(view.idle.after, "idle minute", "idle minutes") +
         "; your next message loads it again";
}

}  // namespace canopy::app
