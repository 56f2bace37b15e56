// Shapes of the layout, the layout's file and the search of the palette, without a window.

#include <gtest/gtest.h>

#include "app/shell/dock_space.h"
#include "app/state/shell.h"
#include "app/ui/actions.h"
#include "engine/base/mapped_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/full_disk.h"
#include "tests/base/temp_folder.h"

namespace canopy::app {
namespace {

using test::TempFolder;

TEST(DockShape, EverythingIsSideBySideAtTheSmallestWindowAndUp) {
  constexpr float kBars = 48 + 28;
  EXPECT_EQ(dock_shape(1280, 800 - kBars), DockShape::wide);  // gui.md, section 2: the minimum
  EXPECT_EQ(dock_shape(1600, 1000 - kBars), DockShape::wide);
  EXPECT_EQ(dock_shape(1280 / 1.5f, (800 - kBars) / 1.5f), DockShape::medium);
  EXPECT_EQ(dock_shape(1280 / 3.0f, (800 - kBars) / 3.0f), DockShape::narrow);
  EXPECT_TRUE(has_timeline_strip(800 - kBars));
  EXPECT_FALSE(has_timeline_strip(300));
}

TEST(DockShape, ASidePanelNeverTakesTheLargerPart) {
  EXPECT_FLOAT_EQ(fitted_length(364, 1596), 364);
  EXPECT_FLOAT_EQ(fitted_length(364, 600), 270);
  EXPECT_GE(fitted_length(0, 0), 1);
}

SavedLayout some_layout() {
  SavedLayout layout;
  layout.docks[DockShape::wide] = {"[Window][Chat]\nPos=0,48\nSize=364,814\nDockId=0x00000003,0\n\n", 1.25f};
  layout.docks[DockShape::narrow] = {"[Docking][Data]\n", 3};
  layout.closed = {"Log"};
  return layout;
}

TEST(LayoutFile, ReadsBackWhatItWrote) {
  const TempFolder folder;
  const std::string path = (folder.path() / "layout.json").string();
  write_layout(path, some_layout());
  const LayoutRead read = read_layout(path);
  EXPECT_EQ(read.note, "");
  EXPECT_EQ(read.layout, some_layout());
  EXPECT_EQ(read_layout((folder.path() / "none").string()).note, "");
  EXPECT_EQ(layout_path_beside("/settings/settings.json"), "/settings/layout.json");
  EXPECT_EQ(layout_path_beside(""), "");
}

TEST(LayoutFile, OfEarlierVersionsKeepsTheTableOfPassesInItsPlace) {
  const TempFolder folder;
  const std::string path = (folder.path() / "layout.json").string();
  SavedLayout layout = some_layout();
  layout.docks[DockShape::wide].ini = "[Window][Round table]\nPos=0,48\nSize=364,814\n\n";
  layout.closed = {"Round table"};
  write_layout(path, layout);
  const LayoutRead read = read_layout(path);
  EXPECT_EQ(read.note, "");
  EXPECT_EQ(read.layout.docks.at(DockShape::wide).ini, "[Window][Passes]\nPos=0,48\nSize=364,814\n\n");
  EXPECT_EQ(read.layout.closed, std::set<std::string>{"Passes"});
}

TEST(LayoutFile, WhatIsNotItsOwnIsIgnoredWithANote) {
  const TempFolder folder;
  const std::string path = (folder.path() / "layout.json").string();
  write_layout(path, some_layout());
  std::string text = read_small_file(path, 1 << 20);
  for (size_t at = 0; at < text.size(); at += 5) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    const LayoutRead read = read_layout(folder.write("flipped", flipped).string());
    // A flipped bit in white space may leave the meaning unchanged; every other one is noticed.
    if (read.note.empty()) {
      for (const auto& [shape, dock] : read.layout.docks) {
        ASSERT_TRUE(some_layout().docks.contains(shape)) << at;
        EXPECT_EQ(dock.ini, some_layout().docks.at(shape).ini) << at;
      }
    } else {
      EXPECT_TRUE(read.layout.docks.empty()) << at;
    }
  }
  const LayoutRead newer = read_layout(folder.write("newer", R"({"version":2,"closed":[]})").string());
  EXPECT_NE(newer.note.find("\"version\" is 2; this Canopy reads version 1"), std::string::npos) << newer.note;
  EXPECT_NE(read_layout(folder.write("cut", text.substr(0, text.size() / 2)).string()).note, "");
}

TEST(LayoutFile, AFullDiskKeepsTheOldLayout) {
  const TempFolder folder;
  const std::string path = (folder.path() / "layout.json").string();
  write_layout(path, some_layout());
  {
    const test::FullDisk full;
    test::expect_error("cannot be saved", [&] { write_layout(path, {}); });
  }
  EXPECT_EQ(read_layout(path).layout, some_layout());
}

TEST(PaletteMatch, RanksStartsBeforeWordsBeforeLetters) {
  EXPECT_EQ(palette_match("", "New chat"), 1);
  EXPECT_GT(palette_match("new", "New chat"), palette_match("chat", "New chat"));
  EXPECT_GT(palette_match("chat new", "New chat"), palette_match("nwct", "New chat"));
  EXPECT_GT(palette_match("nwct", "New chat"), 0);
  EXPECT_EQ(palette_match("xyz", "New chat"), 0);
  EXPECT_EQ(palette_match("ger\u00C4t", "Ger\u00E4t w\u00E4hlen"), 4) << "letters of all scripts, in either case";
}

TEST(ShellState, PanelsCloseOpenAndReset) {
  ShellState state;
  update(state, ShowPanel{"Log", false});
  EXPECT_TRUE(state.closed.contains("Log"));
  update(state, ShowPanel{"Log", true});
  EXPECT_FALSE(state.closed.contains("Log"));
  EXPECT_EQ(state.raised, "Log");
  update(state, ShowPanel{"Chat", false});
  update(state, ResetLayout{});
  EXPECT_TRUE(state.closed.empty());
  EXPECT_EQ(state.layout_resets, 1u);
  update(state, SetTreeBudget{100000});
  EXPECT_EQ(state.tree_budget, kLargestTreeBudget);
  update(state, SetTreeBudget{0});
  EXPECT_EQ(state.tree_budget, 1u);
}

}  // namespace
}  // namespace canopy::app
