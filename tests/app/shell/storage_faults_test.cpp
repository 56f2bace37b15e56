// Settings and pictures where nothing can be written: a message says what to do, and no incomplete file is left.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "app/platform/image.h"
#include "app/state/settings.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/full_disk.h"
#include "tests/base/temp_folder.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::FullDisk;
using test::TempFolder;

/// The number of files in a folder that are not hidden.
size_t files_in(const fs::path& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
  return count;
}

Image small_picture() {
  Image image;
  image.width = image.height = 8;
  image.pixels.assign(8 * 8 * 4, 200);
  return image;
}

constexpr const char* what_to_do = "choose another folder";

TEST(StorageFaults, AFullDiskKeepsTheOldFile) {
  const TempFolder folder;
  const auto path = folder.write("kept", "old");
  std::string message;
  {
    const FullDisk full;
    message = error_of([&] { write_file_atomically(path, "a new content"); });
  }
  EXPECT_NE(message.find("The file " + path.string() + " cannot be saved: writing failed: File too large."),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(what_to_do), std::string::npos) << message;
  EXPECT_EQ(read_small_file(path, 100), "old");
  EXPECT_EQ(files_in(folder.path()), 1u) << "no temporary file is left";
}

TEST(StorageFaults, SettingsThatCannotBeSavedAreToldOnceAndKeptInMemory) {
  const TempFolder folder;
  const std::string path = (folder.path() / "settings.json").string();
  SettingsKeeper keeper(path, {});
  SavedSettings changed;
  changed.theme = ThemeKind::light;
  std::string note;
  {
    const FullDisk full;
    note = keeper.keep(changed);
  }
  EXPECT_NE(note.find(path), std::string::npos) << note;
  EXPECT_NE(note.find(what_to_do), std::string::npos) << note;
  changed.scale = 1.5f;
  EXPECT_EQ(keeper.keep(changed), "") << "it is said once";
  EXPECT_EQ(files_in(folder.path()), 0u);
}

// gui.md, criterion 26: the settings go where XDG says, and a home that cannot be written to is reported.
TEST(StorageFaults, SettingsGoWhereXdgSaysAndAReadOnlyHomeIsSaid) {
  const TempFolder folder;
  const char* before = std::getenv("XDG_CONFIG_HOME");
  const std::string saved = before ? before : "";
  std::string problem;
  ::setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1);
  EXPECT_EQ(user_settings_path(problem), (folder.path() / "canopy" / "settings.json").string());
  EXPECT_EQ(problem, "");
  ::setenv("XDG_CONFIG_HOME", folder.write("file", "x").c_str(), 1);  // a file, so that no folder can be made below it
  EXPECT_EQ(user_settings_path(problem), "");
  EXPECT_NE(problem.find("XDG_CONFIG_HOME"), std::string::npos) << problem;
  EXPECT_NE(problem.find("forgets its settings"), std::string::npos) << problem;
  if (before)
    ::setenv("XDG_CONFIG_HOME", saved.c_str(), 1);
  else
    ::unsetenv("XDG_CONFIG_HOME");
}

TEST(StorageFaults, APictureThatCannotBeSavedNamesItsFileAndLeavesNothing) {
  const TempFolder folder;
  const auto path = folder.path() / "out" / "picture.png";
  std::string message;
  {
    const FullDisk full;
    message = error_of([&] { write_png(small_picture(), path); });
  }
  EXPECT_NE(message.find(path.string()), std::string::npos) << message;
  EXPECT_NE(message.find(what_to_do), std::string::npos) << message;
  EXPECT_EQ(files_in(folder.path() / "out"), 0u);
  write_png(small_picture(), path);
  EXPECT_GT(fs::file_size(path), 50u) << "once there is room, it works";
}

TEST(StorageFaults, APictureBelowAFileSaysSo) {
  const TempFolder folder;
  const auto file = folder.write("file", "x");
  const std::string message = error_of([&] { write_png(small_picture(), file / "below" / "picture.png"); });
  EXPECT_NE(message.find("cannot be created: Not a directory. Choose one that you may write to."), std::string::npos)
      << message;
}

}  // namespace
}  // namespace canopy::app
