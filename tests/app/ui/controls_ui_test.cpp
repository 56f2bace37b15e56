// Every command and control of the window: by keys or reached with the keyboard, in the command palette, in what F1
// says of its part, and in docs/using.md.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/words.h"
#include "app/ui/actions.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

using app::WindowLayout;
using app::WindowPage;

std::string manual() {
  std::ifstream file(CANOPY_SOURCE_DIR "/docs/using.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The lines of "All commands" as the list of actions has them.
std::vector<std::string> command_lines() {
  std::vector<std::string> lines;
  std::string group;
  for (const app::Action& action : app::actions()) {
    const std::string entry = action.name + (*action.keys ? " (" + std::string(action.keys) + ")" : std::string());
    if (group == action.group) {
      lines.back() += "; " + entry;
    } else {
      group = action.group;
      lines.push_back("- **" + group + "**: " + entry);
    }
  }
  for (std::string& line : lines) line += ".";
  return lines;
}

TEST(Controls, TheManualHasEveryCommandWithItsKeysAndNoOther) {
  const std::string text = manual();
  const size_t begin = text.find("## All commands"), end = text.find("\n## ", begin + 1);
  ASSERT_NE(begin, std::string::npos);
  std::vector<std::string> written;
  std::istringstream section(text.substr(begin, end - begin));
  for (std::string line; std::getline(section, line);)
    if (line.starts_with("- **")) written.push_back(line);
  EXPECT_EQ(written, command_lines());
}

/// What the window offers beside moving through passes and chats, each with the four ways to find it.
struct Control {
  const char* action;     // of the command palette
  const char* part;       // of the window, as F1 names them
  const char* told;       // in what F1 says of it
  const char* described;  // in docs/using.md, beside the list of all commands
};
constexpr Control kControls[] = {
    {"Plain or guess: without guesses, or as before", "Numbers", "guess", "switch between the mode in use and plain"},
    {"Predict for another device", "Numbers", "another device", "the chip in Watch offers it"},
    {"Game: guess how many guesses were best, on or off", "Budget line", "game", "makes a game of it"},
    {"Unfold or fold the speed by guesses", "Budget line", "unfolds", "unfolds"},
    {"Describe a device of your own", "Devices", "one of your own", "A device of your own"},
    {"Make the recording exact for other devices", "What if", "recording", "Make it exact"},
    {"Play the race", "Race", "one clock", "one clock"},
    {"End replies that repeat themselves, on or off", "Watch chat", "repeats itself", "\"Loops\" in the menu"},
    {"System prompt, temperature and length of replies", "Watch chat", "system prompt", "has a system prompt"},
    {"Attach a text file", "Watch chat", "attached files", "attached files"},
    {"Show or hide who wrote each token", "Watch chat", "tint", "who wrote each token"},
    {"Measure what passes cost, again", "Watch chat", "measure them again", "Measure again"},
    {"Measure passes by itself when idle, on or off", "Calibration", "measured", "by itself when idle"},
    {"List of chats", "Watch chats", "click opens one", "Ctrl+B shows the list"},
    {"Rename this chat", "Watch chats", "renames", "rename"},
    {"Pin or unpin this chat", "Watch chats", "Pin", "pin"},
    {"Delete this chat", "Watch chats", "delete", "delete"},
    {"Undo delete", "Watch chats", "undone", "undo"},
    {"Serve the model to other programs", "Status bar", "served", "F11 serves"},
    {"Serving, on or off", "Watch chats", "served", "until you switch it off"},
    {"Watch the newest served request", "Watch chats", "click shows it live", "a click shows"},
    {"Get models", "Models", "to get from a hub", "Get models"},
    {"Stop all downloads", "Models", "fetch", "can be stopped"},
    {"An engine elsewhere", "Top bar", "engine elsewhere", "An engine elsewhere"},
    {"Choose the big model", "Top bar", "Which models", "menu of the model"},
    {"Choose the drafter, and where guesses come from", "Top bar", "Which models", "the drafter's menu"},
    {"Choose the device", "Top bar", "which device", "device"},
    {"Memory and context", "KV", "context", "Memory and context"},
    {"Mode: Adaptive", "Top bar", "mode", "`adaptive`"},
    {"Compare ways to decode", "Compare", "Ways to decode", "F2 Compare"},
    {"Start measuring", "Sweep", "one measurement", "Start measuring"},
    {"Pause measuring, or go on", "Sweep", "measurement", "Pause measuring"},
    {"Go on with this sweep", "Sweep", "not finished goes on", "Go on with this sweep"},
    {"Sweep over prompts and widths", "Sweep", "laid over it", "F3 Sweep"},
    {"Slow motion", "Caption", "takes it apart", "slow motion"},
    {"Find the accepted path", "Tree", "bright branch", "the accepted path"},
    {"Whole tree", "Tree", "Every guess", "all of it"},
    {"Wide code and tables: to the right", "Watch chat", "conversation", "Alt+Right"},
    {"Next part of the window", "Top bar", "view", "Ctrl+F6"},
};

TEST(Controls, AreInThePaletteInF1AndInTheManual) {
  const std::string text = manual();
  const size_t list = text.find("## All commands"), behind = text.find("\n## ", list + 1);
  const std::string described = text.substr(0, list) + text.substr(behind);
  for (const Control& each : kControls) {
    EXPECT_TRUE(std::ranges::any_of(app::actions(), [&](const app::Action& a) {
      return std::string_view(a.name) == each.action;
    })) << each.action;
    EXPECT_NE(app::region_words(each.part).find(each.told), std::string_view::npos)
        << each.action << ": F1 does not say \"" << each.told << "\" of " << each.part;
    EXPECT_NE(described.find(each.described), std::string::npos) << each.action << ": \"" << each.described << "\"";
  }
}

ModelReady model_with_all() {
  ModelReady model = small_model();
  model.drafter = "smollm2-135m-dflash.gguf";
  model.memory.budget = 24ull << 30;
  model.memory.weights = 3ull << 30;
  model.memory.context = 8192;
  model.thinking.switchable = true;
  return model;
}

/// A window with a model, and a reply or a recording on show.
void begin(UiHarness& ui, bool replay) {
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(model_with_all());
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    ReplyFinished finished;
    finished.reply_id = generate->reply_id;
    finished.mode = DecodeMode::tree;
    finished.reply_tokens = 9;
    finished.tau = 3;
    finished.tokens_per_second = 40;
    engine.publish(TextDelta{generate->reply_id, "Yes.", 1, 25, 40});
    engine.publish(finished);
  };
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  for (int i = 0; i < 4; ++i) ui.frame();
  if (replay) {
    ui.app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
    ui.app().run(app::RoundsCommand(app::ShowRound{7}));
  } else {
    ui.app().run(app::SendMessage{"Go"});
  }
  for (int i = 0; i < 4; ++i) ui.frame();
}

/// Everything that the window shows, one after the other: the views and pages, each panel of Lab in front.
template <class Look>
void walk(UiHarness& ui, const Look& look_at) {
  const auto settle = [&](const std::string& where) {
    for (int i = 0; i < 4; ++i) ui.frame();
    look_at(where);
  };
  for (const WindowLayout layout : {WindowLayout::watch, WindowLayout::what_if}) {
    ui.app().run(app::ShellCommand(app::SetLayout{layout}));
    settle(layout == WindowLayout::watch ? "Watch" : "What if");
  }
  ui.app().run(app::ShellCommand(app::SetLayout{WindowLayout::lab}));
  for (const char* panel : {"Chat", "History", "Tree", "Passes", "Budget", "Residuals", "Roofline", "Live", "KV",
                            "Calibration", "Log", "Timeline"}) {
    ui.app().run(app::ShellCommand(app::ShowPanel{panel, true}));
    settle(std::string("Lab: ") + panel);
  }
  for (const WindowPage page : {WindowPage::compare, WindowPage::sweep, WindowPage::models}) {
    ui.app().run(app::ShellCommand(app::ShowPage{page}));
    settle(page == WindowPage::compare ? "Compare" : page == WindowPage::sweep ? "Sweep" : "Models");
  }
  ui.app().run(app::ShellCommand(app::ShowPage{WindowPage::rounds}));
}

class ControlsOf : public testing::TestWithParam<bool> {};

// What presses a control by its name finds it wherever the palette offers that.
TEST_P(ControlsOf, ThePaletteIsReached) {
  for (const float width : {1920.0f, 900.0f}) {
    UiHarness ui({}, width, 1080);
    begin(ui, GetParam());
    std::set<std::string> pressed;
    walk(ui, [&](const std::string& where) {
      for (const app::Action& action : app::actions()) {
        const auto wish = action.command(ui.view());
        const auto* shell = wish ? std::get_if<app::ShellCommand>(&*wish) : nullptr;
        const auto* press = shell ? std::get_if<app::PressControl>(shell) : nullptr;
        if (!press) continue;
        // These change what is on show for good.
        const bool starts = press->name == "Start measuring" || press->name.ends_with(" the race");
        if (starts) continue;
        pressed.insert(press->name);
        const int turns =
            press->name == "Title" ? 1 : 2;  // switches there and back; the title is a box until it is left
        for (int turn = 0; turn < turns; ++turn) {
          ui.app().run(*wish);
          for (int i = 0; i < 2; ++i) ui.frame();
          EXPECT_EQ(app::look().press_wanted, "") << action.name << ", in " << where << ", " << width;
          ImGui::ClosePopupsOverWindow(nullptr, false);
          for (int i = 0; i < 2; ++i) ui.frame();
        }
      }
    });
    for (const char* control : {"Model", "Drafter", "Device", "Fit", "Find accepted", "Unfold", "Guess it", "As if on"})
      EXPECT_TRUE(!GetParam() || pressed.contains(control)) << control << ", " << width;
    for (const char* control : {"Title", "Sampling", "Attach a file", "Memory"})
      EXPECT_TRUE(GetParam() || pressed.contains(control)) << control << ", " << width;
  }
}

// What can be clicked can be reached with Tab and the arrows, or has a key of its own.
TEST_P(ControlsOf, TheWindowAreReachedByTheKeyboard) {
  // Without the keyboard's focus: what only says something under the mouse, and what keys of its own do.
  // The edge of the chat is moved by "Wider chat" and "Narrower chat", too; text is selected by the mouse, and copied
  // whole by a button.
  const std::set<std::string> kOnlyTell = {
      "pair", "Context bar", "Tree slots", "States", "Replayed", "Context", "Speed figure", "Ratio figure",
      "Pass time bars", "S(N) title", "title", "Verdict", "Why", "S(N)", "Tokens per pass", "Guesses used",
      "Pass time mean", "Width of the chat", "text",
      // headings of the table of passes
      "accepted", "check ms", "emitted", "guess ms", "guesses", "mode", "pass ms", "time error", "tok/s"};
  const auto only_tells = [&](const std::string& name) {
    return kOnlyTell.contains(name) || name.starts_with("term ") || name.starts_with("row ") ||
           name.ends_with(" chart") || name.starts_with("Time to check");
  };
  for (const float width : {1920.0f, 900.0f}) {
    UiHarness ui({}, width, 1080);
    begin(ui, GetParam());
    std::set<std::string> seen;
    walk(ui, [&](const std::string& where) {
      EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
        for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
          if (!window->Active || window->Hidden) continue;
          ImGuiTestItemList items;
          ctx->GatherItems(&items, ImGuiTestRef(window->ID), 8);
          for (const ImGuiTestItemInfo& item : items) {
            const std::string name = item.DebugLabel;
            if (name.empty() || (item.ItemFlags & ImGuiItemFlags_NoNav) == 0) continue;
            if (only_tells(name)) continue;
            if (seen.insert(name).second)
              ADD_FAILURE() << "\"" << name << "\" of " << window->Name << ", in " << where << ", " << width;
          }
        }
      }));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(ARecordingAndAChat, ControlsOf, testing::Bool());

}  // namespace
}  // namespace canopy::test
