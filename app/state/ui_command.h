#pragma once
// What the user can ask for. Panels only emit these; app/state/view_model.h says what each does to the state.

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
#include "app/state/recording_state.h"
#include "app/state/shell_state.h"
#include "engine/speculation/sampling_settings.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

struct SendMessage {
  std::string text;
};
struct StopWriting {};
struct NewChat {};
struct RunAgain {};  // answers the last question once more
struct OpenModel {
  std::string path;
};
struct LoadQuantized {};  // the model that was too large, and from now on every one that is
struct BrowseModel {};    // the system's file dialog
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
struct SetSampling {  // of the replies to come
  SamplingSettings sampling;
  bool restart = false;  // the next reply takes the seed itself, whatever came before
};
struct SetDrafting {  // of the replies to come; none: what suits the device
  std::optional<DecodeMode> mode;
};
struct ShowHelp {
  bool shown = true;
};
struct CopyText {
  std::string text;
};
struct ShowPathBox {  // the path box that stands in where no file dialog exists
  bool shown = true;
};

using UiCommand = std::variant<SendMessage, StopWriting, NewChat, RunAgain, OpenModel, LoadQuantized, BrowseModel,
                               CancelLoading, ChooseDevice, DismissCard, SetTheme, SetScale, SetSampling, SetDrafting,
                               ShowHelp, CopyText, ShowPathBox, CalibrationCommand, ChatCommand, RoundsCommand,
                               ShellCommand, ModelsCommand, RecordingCommand, CheckCommand>;

/// Collects the commands of one frame; they run after it, so no panel sees the state change while drawing.
class CommandSink {
 public:
  void post(UiCommand command) { commands_.push_back(std::move(command)); }
  std::vector<UiCommand> take() { return std::exchange(commands_, {}); }

 private:
  std::vector<UiCommand> commands_;
};

}  // namespace canopy::app
