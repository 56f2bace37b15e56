// `canopy --replay`: a recorded run without engine, model and display.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/run.h"
#include "tests/app/support/picture.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

class Replay : public testing::Test {
 protected:
  Replay() {
    unsetenv("DISPLAY");
    unsetenv("WAYLAND_DISPLAY");
    TraceBuilder builder;
    builder.write(file(), 30);
  }
  fs::path file() const { return folder_.path() / "run.canopytrace"; }
  app::AppOptions options(const char* shot, uint64_t round = 7) const {
    app::AppOptions options;
    options.replay = file().string();
    options.round = round;
    options.shot = (folder_.path() / shot).string();
    options.width = 1000;
    options.height = 640;
    options.system_fonts = false;
    options.validate = true;
    return options;
  }
  std::string bytes(const char* name) const {
    std::ifstream in(folder_.path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  int run(const app::AppOptions& options) {
    out_.str("");
    err_.str("");
    return app::run_replay(options, out_, err_);
  }

  TempFolder folder_;
  std::ostringstream out_, err_;
};

// gui.md, criterion 2
TEST_F(Replay, DrawsARoundOfTheSizeAskedForAndTwiceTheSame) {
  ASSERT_EQ(run(options("a.png")), 0) << err_.str();  // would be 1 after a message of the validation layer
  ASSERT_EQ(run(options("b.png")), 0) << err_.str();
  ASSERT_EQ(run(options("c.png", 8)), 0) << err_.str();
  const app::Image image = read_png(folder_.path() / "a.png");
  EXPECT_EQ(image.width, 1000u);
  EXPECT_EQ(image.height, 640u);
  EXPECT_GT(colour_count(image), 50u);
  EXPECT_EQ(bytes("a.png"), bytes("b.png"));
  EXPECT_NE(bytes("a.png"), bytes("c.png")) << "another round is another picture";
}

TEST_F(Replay, SaysWhatIsWrong) {
  EXPECT_EQ(run(options("a.png", 30)), 1);
  EXPECT_NE(err_.str().find("0 to 29"), std::string::npos) << err_.str();
  app::AppOptions missing = options("a.png");
  missing.replay = (folder_.path() / "missing.canopytrace").string();
  EXPECT_EQ(run(missing), 1);
  EXPECT_NE(err_.str().find("missing.canopytrace"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_.path() / "a.png"));
}

TEST_F(Replay, DumpsJsonAndDrawsNothing) {
  app::AppOptions dump = options("a.png");
  dump.dump_json = true;
  ASSERT_EQ(run(dump), 0) << err_.str();
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["rounds"], 30);
  EXPECT_EQ(json["statistics"]["rounds"], 30);
  EXPECT_TRUE(json.contains("round"));
  EXPECT_FALSE(fs::exists(folder_.path() / "a.png"));
}

}  // namespace
}  // namespace canopy::test
