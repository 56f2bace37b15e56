#include "engine/base/files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

/// Sets variables for one test and restores them.
class PathsTest : public testing::Test {
 protected:
  ~PathsTest() override {
    for (const auto& [name, old] : saved_) {
      if (old) {
        ::setenv(name.c_str(), old->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }
  void set(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    saved_.emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    ::setenv(name.c_str(), value.c_str(), 1);
  }

  TempFolder folder_;

 private:
  std::map<std::string, std::optional<std::string>> saved_;
};

TEST_F(PathsTest, FollowsTheSpecification) {
  set("CANOPY_CACHE_DIR", "");
  set("HOME", folder_.path().string());
  set("XDG_CACHE_HOME", (folder_.path() / "xdg").string());
  set("XDG_CONFIG_HOME", "relative/is/ignored");
  set("XDG_DATA_HOME", "");
  EXPECT_EQ(cache_dir(), folder_.path() / "xdg" / "canopy");
  EXPECT_EQ(config_dir(), folder_.path() / ".config" / "canopy");
  EXPECT_EQ(data_dir(), folder_.path() / ".local" / "share" / "canopy");
  EXPECT_TRUE(fs::is_directory(folder_.path() / ".local" / "share" / "canopy"));
  EXPECT_EQ(fs::status(config_dir()).permissions(), fs::perms::owner_all);
}

TEST_F(PathsTest, TheOverrideIsUsedAsItIs) {
  set("CANOPY_CACHE_DIR", (folder_.path() / "mine").string());
  EXPECT_EQ(cache_dir(), folder_.path() / "mine");
  EXPECT_TRUE(fs::is_directory(folder_.path() / "mine"));
}

TEST_F(PathsTest, AFileInTheWayIsAnError) {
  set("CANOPY_CACHE_DIR", folder_.write("file", "x").string());
  test::expect_error("cannot be created", [] { cache_dir(); });
}

}  // namespace
}  // namespace canopy
