#pragma once
// The user's choices about the window itself: its layout, panels, pages and the tour.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "app/state/round_log.h"
#include "app/state/settings.h"

namespace canopy::app {

// Dear ImGui keeps where panels lie (app/shell/dock_space.h); this state has which of them are closed.

struct TourState {
  bool shown = false;
  uint32_t step = 0;         // 0 ... kTourSteps - 1; kept while it is not shown, so that it goes on there
  bool seen = false;         // it was begun once, on this computer
  bool opened_demo = false;  // the recorded run was opened for it, and is closed with it
};

/// What the room between the bars shows.
enum class WindowPage { rounds, compare, sweep, models };

struct ShellState {
  TourState tour;
  WindowPage page = WindowPage::rounds;
  WindowLayout layout = WindowLayout::watch;
  bool palette_shown = false;
  bool regions_shown = false;           // "What am I looking at" lies over the window
  bool welcome = false;                 // the start page stays until the user chooses, also once a model is ready
  std::set<std::string> closed;         // names of closed panels
  std::string raised;                   // name of the panel that was last brought to the front
  uint32_t raises = 0;                  // how often a panel was brought to the front
  int focus_moves = 0;                  // how many parts the keyboard was moved on by its key
  uint32_t layout_resets = 0;           // how often a reset of the layout was asked for
  uint32_t tree_budget = kShownBudget;  // nodes of a tree in mode Tree, 1 ... kLargestTreeBudget
  /// The device of Watch's prediction, a profile of engine/whatif or an own one; empty: the usual one.
  std::string as_if_on;
  // The list of chats and the chat in Watch; see chat_list_shown() and chat_width().
  std::optional<bool> chat_list;    // what the user chose; none: chat_list_usual
  bool chat_list_usual = false;     // there were chats when the window opened
  bool chat_list_over = false;      // in a narrow window the list lies over the chat now
  float chat_width = 0;             // at 100%; 0: the usual share
  std::string pressed;              // the control that was pressed last by its name
  uint32_t presses = 0;             // how often one was
  uint32_t chat_list_searches = 0;  // how often the list was asked for by its key, so that one may type at once
};

/// In narrower windows, at 100%, the list of chats lies over the chat, and only until a chat is chosen.
inline constexpr float kRoomForChatList = 1100;
/// Whether Watch shows the list of chats in a window of this width at 100%.
bool chat_list_shown(const ShellState& state, float width);

/// Widths of the chat in Watch, at 100%: what it has at least, what is left for the tree, and the usual share of the
/// window. In narrow windows the usual width leaves more for the tree, so that its sentences have room.
inline constexpr float kLeastChatWidth = 180, kUsualChatWidth = 288, kLeastTreeWidth = 260, kUsualTreeWidth = 408;
inline constexpr float kUsualChatShare = 0.3f;
/// The width that the chat has of `room`, which it shares with the tree. set: what the user chose; 0: the usual one.
float chat_width(float set, float room);

/// The profile that Watch predicts for.
std::string as_if_device(const ShellState& state);

struct ShowPalette {
  bool shown = true;
};
struct PressControl {  // presses a control that is on show: what the command palette reaches it by
  std::string name;    // its id, as of button() and picker()
};
struct ShowPanel {  // opens the panel at its last place in the lab and brings it to the front, or closes it
  std::string name;
  bool shown = true;
};
struct MoveFocus {  // gives the keyboard to the next part of the window, or the one before
  int by = 1;
};
struct SetLayout {
  WindowLayout layout = WindowLayout::watch;
};
struct ShowPage {
  WindowPage page = WindowPage::rounds;
};
struct ShowTour {  // begins the tour, or goes on with it; false skips the rest
  bool shown = true;
};
struct StepTour {
  int by = 1;  // after the last step the tour is over
};
struct ShowRegions {  // numbers the parts of the window and says what each is
  bool shown = true;
};
struct LeaveStart {};   // leaves the start page for the chat
struct ResetLayout {};  // puts every panel back to its first place and size
struct SetTreeBudget {  // for later replies
  uint32_t nodes = kShownBudget;
};

struct SetAsIfOn {  // predicts for this device; an unknown name is the usual one
  std::string device;
};

struct ShowChatList {  // in Watch
  bool shown = true;
  bool over = false;    // the window is narrow: the list lies over the chat, which is not remembered
  bool search = false;  // with the keyboard in its search box
};
struct SetChatWidth {  // in Watch, at 100%; 0: the usual one
  float width = 0;
};

using ShellCommand =
    std::variant<ShowPalette, PressControl, ShowPanel, MoveFocus, SetLayout, ShowPage, ShowTour, StepTour, LeaveStart,
                 ShowRegions, ResetLayout, SetTreeBudget, SetAsIfOn, ShowChatList, SetChatWidth>;

void update(ShellState& state, const ShellCommand& command);

// The tour: seven steps over a recorded run, each with its pass and its moment. Its words are in app/shell/tour.h.

struct ViewModel;

/// The round of a log that shows best why a tree is drafted: of those where the accepted path leaves the drafter's
/// favourite, one with words for both and many tokens; of equals the first. Round 0 where there is none.
size_t telling_round(const RoundLog& log);

/// Shows what the present step of the tour speaks of. Call after the tour was begun, and after each step.
void show_tour_step(ViewModel& view);

/// Applies a command of the tour. Returns whether the demo must be opened first; show_tour_step() comes after that.
bool update_tour(ViewModel& view, const ShowTour& command);
void update_tour(ViewModel& view, const StepTour& command);

}  // namespace canopy::app
