#include "app/state/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace canopy::app {
namespace {

struct Parsed {
  std::optional<AppOptions> options;
  int exit_code = -1;
  std::string out, err;
};

Parsed parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "canopy");
  std::ostringstream out, err;
  Parsed parsed;
  parsed.options = parse_options(static_cast<int>(arguments.size()), arguments.data(), out, err, parsed.exit_code);
  parsed.out = out.str();
  parsed.err = err.str();
  return parsed;
}

TEST(Options, HelpAndVersionEndWellAndNeedNothing) {
  const Parsed help = parse({"--help"}), version = parse({"--version"});
  EXPECT_FALSE(help.options || version.options);
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_NE(help.out.find("--offscreen"), std::string::npos);
  EXPECT_EQ(version.out, "canopy " CANOPY_VERSION "\n");
}

TEST(Options, SayWhatPackagesInstall) {
  const Parsed page = parse({"--man"}), completions = parse({"--completions", "bash"});
  EXPECT_EQ(page.exit_code, 0);
  EXPECT_EQ(completions.exit_code, 0);
  EXPECT_EQ(page.out.rfind(".TH CANOPY 1 ", 0), 0u) << page.out.substr(0, 40);
  EXPECT_NE(page.out.find("\\-\\-offscreen"), std::string::npos);
  EXPECT_NE(completions.out.find("--offscreen"), std::string::npos);
  const Parsed other = parse({"--completions", "tcsh"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("tcsh\"; it must be bash, zsh or fish"), std::string::npos) << other.err;
  EXPECT_EQ(parse({"--help"}).out.find("--completions"), std::string::npos);
}

/// As desktops start programs for files.
TEST(Options, AFileIsAModelOrARecording) {
  const std::string recording = CANOPY_SOURCE_DIR "/assets/demos/records.canopytrace";
  const Parsed replay = parse({recording.c_str()}), model = parse({"/models/a b.gguf"});
  ASSERT_TRUE(replay.options && model.options) << replay.err << model.err;
  EXPECT_EQ(replay.options->replay, recording);
  EXPECT_FALSE(replay.options->model_given);
  EXPECT_EQ(model.options->model, "/models/a b.gguf");
  EXPECT_TRUE(model.options->model_given);
  EXPECT_EQ(model.options->replay, "");
  for (const auto& wrong :
       {parse({"a.gguf", "--model", "b.gguf"}), parse({"a.gguf", "--replay", "t"}), parse({"a.gguf", "b.gguf"})}) {
    EXPECT_FALSE(wrong.options);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_NE(wrong.err, "");
  }
}

TEST(Options, ReplaysARound) {
  const Parsed p = parse({"--replay", "/t.canopytrace", "--round", "41", "--shot", "p.png", "--size", "640x480"});
  ASSERT_TRUE(p.options) << p.err;
  EXPECT_EQ(p.options->replay, "/t.canopytrace");
  EXPECT_EQ(p.options->round, 41u);
  EXPECT_FALSE(p.options->dump_json);
  EXPECT_TRUE(parse({"--replay", "t", "--dump-json"}).options->dump_json);
  for (const auto& wrong :
       {parse({"--round", "1"}), parse({"--dump-json"}), parse({"--replay", "t", "--round", "-1"})}) {
    EXPECT_FALSE(wrong.options);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_NE(wrong.err, "");
  }
}

TEST(Options, ReadsEveryOption) {
  const Parsed p = parse({"--model",     "/m.gguf", "--device", "cpu",          "--prompt",  "Hi",
                          "--offscreen", "--shot",  "a.png",    "--size",       "1600x1000", "--scale",
                          "1.5",         "--theme", "light",    "--max-tokens", "64",        "--exit-after-reply",
                          "--quantize",  "auto",    "--kv",     "q8_0",         "--kernels", "matrix_i8"});
  ASSERT_TRUE(p.options) << p.err;
  EXPECT_EQ(p.options->model, "/m.gguf");
  EXPECT_EQ(p.options->device, "cpu");
  EXPECT_EQ(p.options->width, 1600u);
  EXPECT_EQ(p.options->height, 1000u);
  EXPECT_FLOAT_EQ(p.options->scale, 1.5f);
  EXPECT_EQ(p.options->theme, ThemeKind::light);
  EXPECT_EQ(p.options->quantize, QuantizeOnLoad::automatic);
  EXPECT_EQ(p.options->kv, CacheType::q8_0);
  EXPECT_EQ(p.options->settings.kernels, "matrix_i8");
  EXPECT_EQ(parse({"--kernels", "matrix"}).options->settings.kernels, "matrix");
  EXPECT_EQ(parse({}).options->settings.kernels, "auto");
  EXPECT_EQ(parse({"--kernels", "fma"}).exit_code, 2);
  EXPECT_EQ(parse({"--threads", "1"}).options->settings.threads, 1u);
  EXPECT_EQ(parse({}).options->settings.threads, 0u);
  for (const char* threads : {"0", "-1", "100000", "two"}) EXPECT_EQ(parse({"--threads", threads}).exit_code, 2);
  EXPECT_EQ(p.options->max_tokens, 64u);
  EXPECT_TRUE(p.options->offscreen && p.options->exit_after_reply && p.options->model_given);
}

TEST(Options, AnEngineElsewhereStandsForTheModel) {
  const Parsed p = parse({"--engine", "gpu-box:8737", "--engine-key-file", "/key"});
  ASSERT_TRUE(p.options) << p.err;
  EXPECT_EQ(p.options->model, "http://gpu-box:8737");
  EXPECT_TRUE(p.options->model_given);
  EXPECT_EQ(p.options->engine_key_file, "/key");
  for (const auto& wrong : {parse({"--engine", "ftp://gpu-box"}), parse({"--engine", "a:1", "--model", "/m.gguf"})}) {
    EXPECT_FALSE(wrong.options);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_NE(wrong.err, "");
  }
}

TEST(Options, ChatsAreSampledUnlessToldOtherwise) {
  const Parsed usual = parse({}), greedy = parse({"--temperature", "0", "--seed", "7"});
  ASSERT_TRUE(usual.options && greedy.options) << usual.err << greedy.err;
  EXPECT_GT(usual.options->sampling.temperature, 0.0f);
  EXPECT_FALSE(usual.options->sampling_given || usual.options->theme_given || usual.options->size_given);
  EXPECT_EQ(greedy.options->sampling.temperature, 0.0f);
  EXPECT_EQ(greedy.options->sampling.seed, 7u);
  EXPECT_TRUE(greedy.options->sampling_given);
  EXPECT_TRUE(parse({"--theme", "dark", "--size", "900x600", "--scale", "2"}).options->theme_given);
}

TEST(Options, TheDefaultModelIsTheOneInTheCache) {
  setenv("CANOPY_CACHE_DIR", testing::TempDir().c_str(), 1);
  const Parsed p = parse({});
  unsetenv("CANOPY_CACHE_DIR");
  ASSERT_TRUE(p.options);
  EXPECT_FALSE(p.options->model_given);
  EXPECT_NE(p.options->model.find("models/SmolLM2-135M-Instruct.Q4_1.gguf"), std::string::npos);
  EXPECT_EQ(p.options->model.rfind(testing::TempDir(), 0), 0u);
}

TEST(Options, RefusesWrongValuesWithAMessage) {
  const std::vector<std::vector<const char*>> wrong = {
      {"--size", "10x10"}, {"--size", "1280"},  {"--size", "1280x"},   {"--size", "99999x800"}, {"--size", "12a0x800"},
      {"--scale", "9"},    {"--theme", "pink"}, {"--max-tokens", "0"}, {"--temperature", "-1"}, {"--top-p", "0"},
      {"--min-p", "nan"},  {"--seed", "-4"},    {"--unknown"},
  };
  for (const auto& arguments : wrong) {
    const Parsed p = parse(arguments);
    EXPECT_FALSE(p.options) << arguments.back();
    EXPECT_EQ(p.exit_code, 2) << arguments.back();
    EXPECT_FALSE(p.err.empty()) << arguments.back();
  }
}

TEST(Options, SayTheRangeOfANumber) {
  for (const auto& [option, value] :
       std::vector<std::pair<const char*, const char*>>{{"--seed", "1000000"},
                                                        {"--seed", "18446744073709551616"},
                                                        {"--seed", "0x10"},
                                                        {"--max-tokens", "0"},
                                                        {"--max-tokens", "-1"},
                                                        {"--max-tokens", "99999999999"},
                                                        {"--scale", "inf"},
                                                        {"--repetition-penalty", "nan"}}) {
    const Parsed p = parse({option, value});
    EXPECT_FALSE(p.options) << value;
    EXPECT_NE(p.err.find(std::string(option) + ": '" + value + "' is not allowed; give a"), std::string::npos) << p.err;
  }
}

TEST(Options, ASeedOfMinusOneIsDrawnAndTold) {
  std::set<uint64_t> drawn;
  for (int i = 0; i < 4; ++i) {
    const Parsed p = parse({"--seed", "-1"});
    ASSERT_TRUE(p.options) << p.err;
    EXPECT_LE(p.options->sampling.seed, kMaxSeed);
    EXPECT_NE(p.err.find("--seed " + std::to_string(p.options->sampling.seed) + " repeats it"), std::string::npos);
    drawn.insert(p.options->sampling.seed);
  }
  EXPECT_GT(drawn.size(), 1u);
}

TEST(Options, APromptThatIsNoTextIsRefused) {
  EXPECT_EQ(parse({"--prompt", "\xEF\xBB\xBFHi"}).options->prompt, "Hi");
  const Parsed p = parse({"--prompt", "caf\xE9"});
  EXPECT_FALSE(p.options);
  EXPECT_NE(p.err.find("The text of --prompt is not in UTF-8"), std::string::npos) << p.err;
}

}  // namespace
}  // namespace canopy::app
