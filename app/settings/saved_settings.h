#pragma once
// The settings that the window saves from one start to the next, in settings.json of the user's configuration folder.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/base/choices.h"
#include "app/models/models_state.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

struct SavedSettings {
  ThemeKind theme = ThemeKind::dark;
  WindowLayout layout = WindowLayout::watch;
  float scale = 1.0f;                           // of the interface, kMinScale ... kMaxScale
  uint32_t width = 1280, height = 800;          // of the window at 100%, kMinSide ... kMaxSide
  SamplingSettings sampling = chat_sampling();  // its seed is not saved

  uint32_t max_tokens = kMaxTokens;     // of a reply, 1 ... kMostMaxTokens
  std::optional<DecodeMode> drafting;   // none: the default of the device
  uint32_t tree_budget = kShownBudget;  // of mode Tree, 1 ... kLargestTreeBudget
  std::string as_if_on;  // the device of Watch's prediction, a profile of engine/predict; empty: the usual one
  std::vector<std::string> recent;  // paths of models, the newest first
  bool reduced_motion = false;
  bool tour_seen = false;
  uint32_t tour_step = 0;                // where it was left
  std::optional<bool> thinking;          // of replies, where the model knows it; none: as its template does by itself
  uint32_t threads = 0;                  // of the processor, to kMostThreads; 0: as the program was started
  uint32_t idle_minutes = 0;             // after which the model is released, to kMostIdleMinutes; 0: never
  std::vector<DeviceTest> device_tests;  // the newest first

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
