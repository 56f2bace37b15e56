// The peak memory of loading a model on a device whose memory is the host's: at most 1.15 times the size of the
// weights' file. Measured as the largest resident set of canopy-cli: mapped pages of the file, memory of the device and
// of the program. What program and driver take with a model of a few KB is subtracted.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/base/default_model.h"
#include "tests/base/temp_folder.h"
#include "tests/model/random_model.h"

extern char** environ;

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

/// Runs f in a child process. The peak of a started program includes that of the process that started it, so this
/// process must stay small.
template <class F>
void run_aside(F&& f) {
  const pid_t child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

constexpr uint32_t kContext = 64;

/// Largest resident set in bytes of canopy-cli generate with a model and these options; 0 when it failed.
uint64_t peak_of(const fs::path& model, const std::vector<std::string>& options) {
  std::vector<std::string> words = {std::getenv("CANOPY_CLI"), "generate",      "--model", model.string(), "--context",
                                    std::to_string(kContext),  "--no-self-test"};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // Else glibc keeps what it is given back, up to twice the largest block that was freed: some MB of transient tables
  // that show where a driver does not take device memory from the same heap (lavapipe of Mesa 25).
  setenv("MALLOC_TRIM_THRESHOLD_", "131072", 1);
  pid_t child = 0;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const int failed = posix_spawn(&child, arguments[0], &quiet, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (failed != 0) return 0;
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

/// The peak of loading a model and writing one token.
uint64_t peak_of_load(const fs::path& model, const std::string& quantize) {
  return peak_of(model, {"--raw", "--prompt", "A", "--max-tokens", "1", "--json", "--quantize", quantize});
}

/// The peak of loading a model only: a conversation without a turn compiles no kernels for the model's shapes.
uint64_t peak_of_load_alone(const fs::path& model) {
  return peak_of(model, {"--drafter", "none", "--chat", "-"});
}

/// Layers of the shapes of a model of some hundred millions of weights.
RandomModel model_of(TensorType type, uint32_t layers) {
  RandomModel random;
  random.type = type;
  random.layers = layers;
  random.hidden = 1024;
  random.heads = 16;
  random.kv_heads = 4;
  random.head_dim = 64;
  random.ffn = 3072;
  random.vocab = 2000;
  random.tied = false;
  return random;
}

struct Case {
  std::string name;
  TensorType type;
  std::string quantize;
  uint32_t layers;
  double most;  // limit, in sizes of the file
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class LoadMemory : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (std::getenv("CANOPY_CLI") == nullptr) GTEST_SKIP() << "CANOPY_CLI does not name the program";
  }
};

TEST_P(LoadMemory, PeaksNearTheSizeOfTheFile) {
  const auto& [name, weights, rule, layers, most] = GetParam();
  const auto type = weights;  // lambdas cannot capture parts of a structured binding, says clang 14
  const auto quantize = rule;
  const TempFolder folder;
  const auto load = [&](uint32_t count, uint64_t& bytes) {
    const fs::path path = folder.path() / "model.gguf";
    run_aside([&] { folder.write("model.gguf", model_of(type, count).build()); });
    bytes = fs::file_size(path);
    return peak_of_load(path, quantize);
  };
  // Program, driver and kernels take the same for both models, so the difference is due to the weights.
  uint64_t small_file = 0, large_file = 0;
  const uint64_t small = load(1, small_file), large = load(layers, large_file);
  ASSERT_GT(small, 0u) << "canopy-cli failed";
  ASSERT_GT(large, small);
  ASSERT_GT(large_file - small_file, 64u << 20);
  const double share = static_cast<double>(large - small) / static_cast<double>(large_file - small_file);
  RecordProperty("share", std::to_string(share));
  std::printf("%s: a file of %.0f MB more takes %.3f times as much\n", name.c_str(),
              static_cast<double>(large_file - small_file) / 1e6, share);
  EXPECT_LE(share, most);
}

INSTANTIATE_TEST_SUITE_P(Types, LoadMemory,
                         ::testing::Values(Case{"q8_0", TensorType::q8_0, "none", 8, 1.15},
                                           Case{"q4_1", TensorType::q4_1, "none", 12, 1.15},
                                           // Half of the file's bytes, and no more of them than that at any time.
                                           Case{"bf16_as_q8_0", TensorType::bf16, "q8_0", 5, 0.65}),
                         [](const auto& info) { return info.param.name; });

// The default model, with everything that a load makes of it: weights, working memory, and the tables of its 49,152
// tokens. Subtracted is what the program takes for a model of 1,010 tokens and a few hundred KB, the regular
// expressions of its tokenizer included. The K/V cache is left out, as its size is the user's choice and the same for
// any type of weights.
TEST(LoadMemory, TheDefaultModelPeaksNearTheSizeOfItsFile) {
  if (std::getenv("CANOPY_CLI") == nullptr) GTEST_SKIP() << "CANOPY_CLI does not name the program";
  const fs::path model = default_model();
  if (model.empty()) GTEST_SKIP() << "The default model is not on this machine";
  constexpr uint64_t slots = kContext + 128;               // positions, and rows of a draft tree
  constexpr uint64_t cache = slots * 30 * 2 * 3 * 64 * 2;  // layers, keys and values, heads, elements, bytes
  const fs::path small = fs::path(CANOPY_SOURCE_DIR) / "tests" / "golden" / "tiny-qwen3-q8_0.gguf";
  const uint64_t nothing = peak_of_load_alone(small), all = peak_of_load_alone(model);
  ASSERT_GT(nothing, 0u) << "canopy-cli failed";
  ASSERT_GT(all, nothing + cache);
  const auto file = static_cast<double>(fs::file_size(model));
  const double share = static_cast<double>(all - nothing - cache) / file;
  RecordProperty("share", std::to_string(share));
  std::printf(
      "%s: %.1f MB for a file of %.1f MB, %.3f times as much; the K/V cache of %u positions takes %.1f MB more\n",
      model.filename().c_str(), share * file / 1e6, file / 1e6, share, static_cast<unsigned>(slots),
      static_cast<double>(cache) / 1e6);
  EXPECT_GT(share, 0.9);  // less would mean that something was not counted
  EXPECT_LE(share, 1.15);
}

}  // namespace
}  // namespace canopy::test
