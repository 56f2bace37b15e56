#include "app/state/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/base/error.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

class SavedSettingsTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  std::string path() const { return (folder_ / "settings.json").string(); }
  void put(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path(), std::ios::binary).rdbuf();
    return all.str();
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("canopy_settings_" + std::to_string(::getpid()));
};

TEST_F(SavedSettingsTest, ComeBackAsTheyWereWritten) {
  SavedSettings s;
  s.theme = ThemeKind::light;
  s.scale = 1.25f;
  s.width = 900;
  s.height = 600;
  s.sampling.temperature = 0.9f;
  s.sampling.top_p = 0.85f;
  s.drafting = DecodeMode::chain;
  s.tree_budget = 64;
  s.draft_sources = kFromSuffix;
  s.stop_loops = false;
  s.measures_when_idle = false;
  s.max_tokens = 2000;
  s.as_if_on = "own:My GPU";
  s.own_devices = {{"My GPU", 672, 31.5, 1.3}, {"Another", 100, 4, 3}};
  s.device = {"cuda:0", "cuda", "NVIDIA GeForce RTX 4090"};
  s.recent = {"/models/b.gguf", "/models/a"};
  s.reduced_motion = true;
  s.idle_minutes = 15;
  s.threads = 3;
  s.chat_list = false;
  s.chat_width = 412;
  s.last_chat = "20261127-101112-abc123";
  s.downloads = {{"Qwen/Qwen3-8B-GGUF:Q4_K_M", "z-lab/Qwen3-8B-DFlash-b16"}, {"a/b", ""}};
  s.serve = {true, "0.0.0.0", 9000, {"box.local", "box"}, {"https://chat.example"}};
  s.engine_key_file = "/keys/gpu-box";
  s.device_tests = {{"Radeon RX 7900 XTX", "RADV 25.2", true, "Exactness checked."},
                    {"llvmpipe", "22.3", false, "No."}};
  write_settings(path(), s);
  const SettingsRead read = read_settings(path());
  EXPECT_EQ(read.note, "");
  EXPECT_TRUE(read.settings == s);
  EXPECT_NE(text().find("\"temperature\": 0.9,"), std::string::npos) << text();
}

TEST_F(SavedSettingsTest, TheKeyOfTheServerHasAFileOfItsOwnThatOthersCannotRead) {
  EXPECT_EQ(read_serve_key(path()), "") << "there is none";
  EXPECT_EQ(read_serve_key(""), "");
  write_serve_key(path(), "a-key-for-tests");
  EXPECT_EQ(read_serve_key(path()), "a-key-for-tests");
  EXPECT_EQ(fs::status(folder_ / "serve.key").permissions() & fs::perms::all,
            fs::perms::owner_read | fs::perms::owner_write);
  write_serve_key(path(), "another-key");
  EXPECT_EQ(read_serve_key(path()), "another-key");
  write_serve_key(path(), "");
  EXPECT_FALSE(fs::exists(folder_ / "serve.key"));
  std::ofstream(folder_ / "serve.key") << std::string(5000, 'k');
  try {
    read_serve_key(path());
    ADD_FAILURE() << "it is too long";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("serve.key has 5000 bytes; a key has at most 4096."), std::string::npos)
        << e.what();
  }
}

TEST_F(SavedSettingsTest, AnySetOfSourcesOfGuessesComesBack) {
  for (const DraftSources sources : {DraftSources{0}, kFromDflash, kFromSuffix, kUsualSources}) {
    SavedSettings s;
    s.draft_sources = sources;
    write_settings(path(), s);
    EXPECT_EQ(read_settings(path()).note, "");
    EXPECT_TRUE(read_settings(path()).settings == s) << text();
  }
}

TEST_F(SavedSettingsTest, DevicesByTheirEarlierNamesAreStillKnown) {
  SavedSettings s;
  s.as_if_on = "rx7900xtx";
  write_settings(path(), s);
  std::string changed = text();
  changed.replace(changed.find("rx7900xtx"), 9, "RX 7900 XTX");
  std::ofstream(path()) << changed;
  const SettingsRead read = read_settings(path());
  EXPECT_EQ(read.note, "");
  EXPECT_EQ(read.settings.as_if_on, "rx7900xtx");
}

TEST_F(SavedSettingsTest, NoFileMeansTheUsualSettingsAndNoNote) {
  const SettingsRead read = read_settings(path());
  EXPECT_EQ(read.note, "");
  EXPECT_TRUE(read.settings == SavedSettings{});
  EXPECT_EQ(read_settings("").note, "");
}

TEST_F(SavedSettingsTest, ABrokenFileIsIgnoredWithANoteThatNamesTheFault) {
  struct Case {
    std::string text, fault;
  };
  const Case cases[] = {
      {"{\"theme\": \"dark\"", "settings.json"},
      {"[]", "settings.json"},
      {"{\"theme\": \"pink\"}", "\"theme\" is \"pink\""},
      {"{\"theme\": 3}", "theme"},
      {"{\"max_tokens\": 0}", "\"max_tokens\" is 0; it must be 1 to 1048576."},
      {"{\"tree_budget\": 0}", "\"tree_budget\" is 0; it must be 1 to 1024."},
      {"{\"as_if_on\": \"Abacus\"}", "\"as_if_on\" is \"Abacus\"; it must be one of \"rtx4060\", "},
      {"{\"as_if_on\": 3}", "as_if_on"},
      {"{\"as_if_on\": \"own:Gone\"}", "\"as_if_on\" is \"own:Gone\"; it must be one of"},
      {"{\"own_devices\": [{\"name\": \"My GPU\", \"gb_s\": 1, \"tflops\": 3, \"dispatch_us\": 1}]}",
       "Its memory is 1 GB/s; it must be 5 to 20000."},
      {"{\"idle_minutes\": 1441}", "\"idle_minutes\" is 1441; it must be 0 to 1440."},
      {"{\"chat_width\": -1}", "\"chat_width\" is -1; it must be 0 to 8192."},
      {"{\"chat_list\": 3}", "chat_list"},
      {"{\"device\": \"cuda:0\"}", "device"},
      {"{\"device\": {\"selector\": \"cuda:0\", \"backend\": \"cuda\"}}", "name"},
      {"{\"serve\": 1}", "serve"},
      {"{\"serve_port\": 65536}", "\"serve_port\" is 65536; it must be 0 to 65535."},
      {"{\"serve_cors\": [1]}", "\"serve_cors\" must hold origins of pages."},
      {"{\"serve_allow_hosts\": [1]}", "\"serve_allow_hosts\" must hold names of hosts."},
      {"{\"threads\": 4097}", "\"threads\" is 4097; it must be 0 to 4096."},
      {"{\"idle_minutes\": -5}", "idle_minutes"},
      {"{\"idle_minutes\": \"never\"}", "idle_minutes"},
      {"{\"recent\": [3]}", "\"recent\" must hold paths"},
      {"{\"downloads\": [{\"name\": \"../a\"}]}", "\"downloads\" names \"../a\"; OWNER/REPO:QUANT is allowed."},
      {"{\"downloads\": [{\"drafter\": \"a/b\"}]}", "downloads"},
      {"{\"drafting\": \"bushy\"}", "\"drafting\" is \"bushy\""},
      {"{\"draft_sources\": \"tea leaves\"}", "\"draft_sources\" is \"tea leaves\""},
      {"{\"draft_sources\": 3}", "draft_sources"},
      {"{\"scale\": 40}", "\"scale\" is 40; it must be 0.75 to 3."},
      {"{\"width\": 5}", "\"width\" is 5; it must be 320 to 8192."},
      {"{\"height\": -1}", "height"},
      {"{\"temperature\": 1e999}", "settings.json"},
      {"{\"min_p\": 0.9}", "min_p"},
      {std::string(70'000, ' '), "70000 bytes"},
      {std::string("\0\xff", 2), "settings.json"},
      {"", "settings.json"},
  };
  for (const Case& c : cases) {
    put(c.text);
    const SettingsRead read = read_settings(path());
    EXPECT_TRUE(read.settings == SavedSettings{}) << c.text.substr(0, 40);
    EXPECT_NE(read.note.find(c.fault), std::string::npos) << c.text.substr(0, 40) << " gave: " << read.note;
  }
  fs::remove(path());
  fs::create_directory(path());
  EXPECT_NE(read_settings(path()).note, "");
}

TEST_F(SavedSettingsTest, EveryTruncationIsEitherReadOrNoted) {
  write_settings(path(), SavedSettings{});
  const std::string whole = text();
  for (size_t n = 0; n + 2 < whole.size(); ++n) {  // the last two bytes close the object
    put(whole.substr(0, n));
    EXPECT_NE(read_settings(path()).note, "") << n;
  }
}

TEST_F(SavedSettingsTest, FieldsOfALaterVersionAreLeftAlone) {
  put("{\"version\": 7, \"theme\": \"light\", \"dock\": {\"left\": 3}}");
  const SettingsRead read = read_settings(path());
  EXPECT_EQ(read.note, "");
  EXPECT_EQ(read.settings.theme, ThemeKind::light);
}

TEST_F(SavedSettingsTest, TheKeeperWritesChangesAndSaysOnceThatItCannot) {
  SavedSettings now;
  SettingsKeeper keeper(path(), now);
  EXPECT_EQ(keeper.keep(now), "");
  EXPECT_FALSE(fs::exists(path()));  // nothing changed
  now.width = 1000;
  EXPECT_FALSE(keeper.worth_saving_at_once(now));
  now.theme = ThemeKind::light;
  EXPECT_TRUE(keeper.worth_saving_at_once(now));
  EXPECT_EQ(keeper.keep(now), "");
  EXPECT_TRUE(read_settings(path()).settings == now);

  SettingsKeeper lost((folder_ / "nowhere" / "settings.json").string(), now);
  now.scale = 2;
  EXPECT_NE(lost.keep(now).find("nowhere"), std::string::npos);
  now.scale = 3;
  EXPECT_EQ(lost.keep(now), "");
}

}  // namespace
}  // namespace canopy::app
