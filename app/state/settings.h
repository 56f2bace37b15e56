#pragma once
// The settings that the user can choose: their ranges and defaults, the command line of the window, and the file that
// keeps them from one start to the next.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "app/state/models.h"
#include "engine/base/numbers.h"
#include "engine/compute/backend.h"
#include "engine/format/quantize.h"
#include "engine/session/engine_client.h"
#include "engine/speculation/ddtree.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/sampler.h"
#include "engine/whatif/device_profile.h"

namespace canopy::app {

// Ranges and defaults: the controls of the window, the command line and the settings file all take them from here.

/// projector: black on white with strong colours, as projectors wash out fine differences.
enum class ThemeKind { dark, light, projector };

/// "dark", "light" or "projector", as written in files and on the command line.
constexpr const char* to_string(ThemeKind kind) {
  return kind == ThemeKind::dark ? "dark" : kind == ThemeKind::light ? "light" : "projector";
}
/// The theme that a button leads to: dark, light, projector, and dark again.
constexpr ThemeKind next_theme(ThemeKind kind) {
  return kind == ThemeKind::dark ? ThemeKind::light : kind == ThemeKind::light ? ThemeKind::projector : ThemeKind::dark;
}

/// How the window is arranged: watch for newcomers and stages, with the tree as large as possible; what_if for other
/// devices side by side; lab with all panels.
enum class WindowLayout { watch, what_if, lab };

/// "watch", "what-if" or "lab", as written in files and on the command line.
constexpr const char* to_string(WindowLayout layout) {
  return layout == WindowLayout::watch ? "watch" : layout == WindowLayout::lab ? "lab" : "what-if";
}

// Scale of the interface: 1 is the size in which it was designed.
inline constexpr float kMinScale = 0.75f;
inline constexpr float kMaxScale = 3.0f;

// Sampling settings.
inline constexpr float kMaxTemperature = 2.0f;
inline constexpr float kMinTopP = 0.05f;
inline constexpr float kMaxMinP = 0.5f;
inline constexpr float kMinPenalty = 1.0f, kMaxPenalty = 2.0f;
inline constexpr uint32_t kMaxSeed = 999'999;  // short enough to be read aloud

// Tree budgets: drafted nodes of a tree in mode Tree. kShownBudget is the default: small, as on a slow device trees are
// drafted to be looked at and not for speed.
inline constexpr uint32_t kShownBudget = 8;
inline constexpr uint32_t kLargestTreeBudget = 1024;

// Tokens that a reply may have before it waits to be continued.
inline constexpr uint32_t kMaxTokens = 512, kMostMaxTokens = 1u << 20;

inline constexpr uint32_t kTourSteps = 7;

inline constexpr uint32_t kMostPort = 65535;
inline constexpr uint32_t kMostThreads = 4096;         // that a setting names; a processor takes those it has
inline constexpr uint32_t kMostIdleMinutes = 24 * 60;  // after which a model can be released

/// How the window samples tokens by default. The command line is greedy by default, so that its results repeat; in a
/// chat, small models repeat themselves when decoded greedily.
inline SamplingSettings chat_sampling() {
  SamplingSettings settings;
  settings.temperature = 0.5f;
  settings.top_p = 0.9f;
  settings.min_p = 0.05f;
  return settings;
}

inline constexpr uint32_t kMinSide = 320;   // pixels of the window
inline constexpr uint32_t kMaxSide = 8192;  // pixels; every Vulkan device can draw 4096, most of them this much

struct AppOptions {
  std::string model;  // as given, or the default model's path
  bool model_given = false;
  std::string engine_key_file;  // with the key of an engine elsewhere; empty: that of the settings, if any
  std::string device;           // index, part of a name, or a type
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  CacheType kv = CacheType::f16;
  DeviceSettings settings;
  std::string prompt;             // empty: none
  std::string replay;             // path of a trace to show; empty: none
  std::optional<uint64_t> round;  // round of the trace, counted from 0
  bool dump_json = false;         // write the trace as JSON to standard output instead
  bool offscreen = false;
  std::string shot;  // PNG path; empty: none
  uint32_t width = 1280, height = 800;
  float scale = 1.0f;
  ThemeKind theme = ThemeKind::dark;
  WindowLayout layout = WindowLayout::watch;
  SamplingSettings sampling = chat_sampling();
  uint32_t max_tokens = kMaxTokens;
  bool exit_after_reply = false;
  bool system_fonts = true;
  bool validate = false;
  // Whether the command line gave values that replace the saved ones, and the path of the saved ones (empty: nothing is
  // saved).
  bool size_given = false, scale_given = false, theme_given = false, layout_given = false, sampling_given = false,
       max_tokens_given = false;
  std::string settings_file;
  std::string settings_problem;  // why settings cannot be saved, as a sentence for the user
  bool keeps_chats = false;      // chats are saved in the user's data folder
};

/// Reads the command line. Returns nullopt when the program should end (help, version or a wrong argument); exit_code
/// then has its exit code, and the text for the user is in the streams.
std::optional<AppOptions> parse_options(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                                        int& exit_code);

/// "WxH" with both sides in kMinSide ... kMaxSide. Throws Error (bad_input).
void parse_size(const std::string& text, uint32_t& width, uint32_t& height);

/// The key that engines elsewhere are told: that in the file, or without one that of CANOPY_ENGINE_KEY; empty: none.
/// Throws bad_input where the file cannot be read or has none.
std::string engine_key(const std::string& file);

/// The path of the default model: models/SmolLM2-135M-Instruct.Q4_1.gguf as it was installed with the program, else
/// where the set-up puts it in the cache folder, whether it is there or not. Empty where no such folder can be made.
std::string default_model_path();

// The settings that the window saves from one start to the next, in settings.json of the user's configuration folder.

/// A download that has not come to its end: names as HubName::text() gives them.
struct UnfinishedDownload {
  std::string name;
  std::string drafter;  // that was fetched for it; empty: none
  bool operator==(const UnfinishedDownload&) const = default;
};
inline constexpr size_t kKeptDownloads = 32;

/// How the loaded model is served, as by `canopy-cli serve`. The key is kept in a file of its own.
struct ServeSettings {
  bool on = false;
  std::string host = "127.0.0.1";
  uint32_t port = kServePort;        // to kMostPort; 0 takes one that is free
  std::vector<std::string> hosts;    // names by which clients call this machine
  std::vector<std::string> origins;  // pages that may ask
  bool operator==(const ServeSettings&) const = default;
};

struct SavedSettings {
  ThemeKind theme = ThemeKind::dark;
  WindowLayout layout = WindowLayout::watch;
  float scale = 1.0f;                           // of the interface, kMinScale ... kMaxScale
  uint32_t width = 1280, height = 800;          // of the window at 100%, kMinSide ... kMaxSide
  SamplingSettings sampling = chat_sampling();  // its seed is not saved

  uint32_t max_tokens = kMaxTokens;            // of a reply, 1 ... kMostMaxTokens
  std::optional<DecodeMode> drafting;          // none: the default of the device
  uint32_t tree_budget = kShownBudget;         // of mode Tree, 1 ... kLargestTreeBudget
  DraftSources draft_sources = kUsualSources;  // that replies ask, where they are there
  bool stop_loops = true;                      // replies that repeat themselves end
  bool measures_when_idle = true;              // what passes cost, where that was measured badly or has changed
  /// The device of Watch's prediction, a profile of engine/whatif or an own one; empty: the usual one.
  std::string as_if_on;
  std::vector<predict::OwnDevice> own_devices;  // of What if
  KeptDevice device;                            // that models are loaded on, unless the command line names one
  std::vector<std::string> recent;              // paths of models, the newest first
  bool reduced_motion = false;
  bool tour_seen = false;
  uint32_t tour_step = 0;                // where it was left
  std::optional<bool> thinking;          // of replies, where the model knows it; none: as its template does by itself
  uint32_t threads = 0;                  // of the processor, to kMostThreads; 0: as the program was started
  uint32_t idle_minutes = 0;             // after which the model is released, to kMostIdleMinutes; 0: never
  std::vector<DeviceTest> device_tests;  // the newest first
  std::optional<bool> chat_list;         // shown in Watch, where there is room; none: where there are chats
  float chat_width = 0;                  // of the chat in Watch, at 100%; 0: the usual share of the window
  std::string last_chat;                 // id of the chat that was on show last; empty: none
  std::vector<UnfinishedDownload> downloads;
  ServeSettings serve;
  std::string engine_key_file;  // with the key that engines elsewhere are told; empty: none

  bool operator==(const SavedSettings& other) const;
};

struct SettingsRead {
  SavedSettings settings;
  std::string note;  // why the file or a value in it was ignored; empty when all is well or there is no file
};

/// Reads the file. Never throws: an error goes into `note`, and defaults take the place of what could not be read.
SettingsRead read_settings(const std::string& path);

/// Replaces the file. On failure the old file stays as it was. Throws Error (bad_input) naming path and reason.
void write_settings(const std::string& path, const SavedSettings& settings);

/// The key that served clients must name, of the file serve.key beside these settings: readable by the user alone.
/// Empty where there is none. Throws bad_input naming the file where it cannot be read.
std::string read_serve_key(const std::string& settings_path);
/// Replaces the file; an empty key removes it. Throws bad_input naming path and reason.
void write_serve_key(const std::string& settings_path, const std::string& key);

/// Path of this user's file. Empty when there is no folder for it; `problem` then has the reason, and nothing is saved.
std::string user_settings_path(std::string& problem);

/// Saves the settings whenever they have changed. Without a path it does nothing.
class SettingsKeeper {
 public:
  SettingsKeeper(std::string path, const SavedSettings& saved) : path_(std::move(path)), saved_(saved) {}

  /// Writes the file if the settings differ from it. Returns a sentence after the first failure, and writes nothing
  /// more after it; empty otherwise.
  std::string keep(const SavedSettings& now);
  /// Whether `now` differs in more than the size of the window. That changes all the time while the window is dragged.
  bool worth_saving_at_once(const SavedSettings& now) const;

 private:
  std::string path_;
  SavedSettings saved_;
};

}  // namespace canopy::app
