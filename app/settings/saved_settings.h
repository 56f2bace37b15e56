#pragma once
// What the window remembers from one start to the next, in settings.json of the user's configuration folder.

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
  float scale = 1.0f;                           // of the interface, kMinScale ... kMaxScale
  uint32_t width = 1280, height = 800;          // of the window at 100%, kMinSide ... kMaxSide
  SamplingSettings sampling = chat_sampling();  // its seed is not saved

  std::optional<DecodeMode> drafting;   // none: what suits the device
  uint32_t tree_budget = kShownBudget;  // of mode Tree, 1 ... kLargestTreeBudget
  std::vector<std::string> recent;      // paths of models, the last one first
  bool reduced_motion = false;
  std::vector<DeviceTest> device_tests;  // the last one first

  bool operator==(const SavedSettings& other) const;
};

struct SettingsRead {
  SavedSettings settings;
  std::string note;  // why the file was ignored, or a value in it; empty when all is well or there is no file
};

/// Reads the file. Never fails: whatever is wrong with it becomes the note, and the defaults stand in.
SettingsRead read_settings(const std::string& path);

/// Replaces the file, or leaves the old one untouched. Throws Error (bad_input) naming path and reason.
void write_settings(const std::string& path, const SavedSettings& settings);

/// The file of this user. Empty when there is no folder for it, with the reason in problem; then nothing is remembered.
std::string user_settings_path(std::string& problem);

/// Keeps the file in step with the window. Without a path it does nothing.
class SettingsKeeper {
 public:
  SettingsKeeper(std::string path, const SavedSettings& saved) : path_(std::move(path)), saved_(saved) {}

  /// Saves what differs from the file. A failure is told once, by the returned sentence; then no more is tried.
  std::string keep(const SavedSettings& now);
  /// Whether `now` differs in more than the window's size, which changes all the time while it is dragged.
  bool worth_saving_at_once(const SavedSettings& now) const;

 private:
  std::string path_;
  SavedSettings saved_;
};

}  // namespace canopy::app
