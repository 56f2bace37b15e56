#pragma once
// The commands of the user. Panels only post them; update() in app/state/view_model.h carries them out.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/base/choices.h"
#include "app/conversation/chat_state.h"
#include "app/models/models_state.h"
#include "app/rounds/rounds_state.h"
#include "app/state/ar_check.h"
#include "app/state/calibration_state.h"
#include "app/state/comparison_state.h"
#include "app/state/recording_state.h"
#include "app/state/report_state.h"
#include "app/state/share_state.h"
#include "app/state/shell_state.h"
#include "app/state/verify_state.h"
#include "app/state/what_if_state.h"
#include "engine/speculation/sampling_settings.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

struct SendMessage {
  std::string text;
};
struct StopWriting {};
struct NewChat {};
struct RunAgain {};  // writes another answer to the last question
struct OpenModel {
  std::string path;
};
struct LoadQuantized {};  // quantizes the model that was too large, and all later ones that are
struct BrowseModel {};    // opens the system's file dialog
struct CancelLoading {};
struct ChooseDevice {
  std::string selector;
};
struct DismissCard {
  uint64_t id = 0;
};
struct SetTheme {
  ThemeKind theme = ThemeKind::dark;
};
struct SetScale {
  float scale = 1.0f;
};
struct SetSampling {  // for later replies
  SamplingSettings sampling;
  bool restart = false;  // the next reply uses the seed itself, and later ones count on from there
};
struct SetMaxTokens {  // of later replies, and that a Continue adds at most
  uint32_t tokens = kMaxTokens;
};
struct SetDrafting {  // for later replies; none: the default of the device
  std::optional<DecodeMode> mode;
};
struct ShowHelp {
  bool shown = true;
};
struct CopyText {
  std::string text;
};
struct ShowPathBox {  // shows the box for a path, used where the system has no file dialog
  bool shown = true;
};

using UiCommand = std::variant<SendMessage, StopWriting, NewChat, RunAgain, OpenModel, LoadQuantized, BrowseModel,
                               CancelLoading, ChooseDevice, DismissCard, SetTheme, SetScale, SetSampling, SetMaxTokens,
                               SetDrafting, ShowHelp, CopyText, ShowPathBox, CalibrationCommand, ChatCommand,
                               RoundsCommand, ShellCommand, ModelsCommand, RecordingCommand, ReportCommand,
                               ShareCommand, VerifyCommand, CheckCommand, WhatIfCommand, ComparisonCommand>;

/// Collects the commands of one frame. They are carried out after it, so that no panel sees the state change while it
/// draws.
class CommandSink {
 public:
  void post(UiCommand command) { commands_.push_back(std::move(command)); }
  std::vector<UiCommand> take() { return std::exchange(commands_, {}); }

 private:
  std::vector<UiCommand> commands_;
};

}  // namespace canopy::app
