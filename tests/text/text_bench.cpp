// Measures the speed of encoding: MB/s of each tokenizer on one core, over the source and documentation of this
// repository or the files given as arguments.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tests/text/golden_text.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

std::string repository_text() {
  std::vector<fs::path> files;
  for (const char* folder : {"app", "docs", "engine", "shaders", "tests", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(CANOPY_SOURCE_DIR) / folder)) {
      const auto extension = entry.path().extension();
      if (extension == ".cpp" || extension == ".h" || extension == ".md" || extension == ".comp" ||
          extension == ".py") {
        files.push_back(entry.path());
      }
    }
  }
  std::string text;
  for (const fs::path& file : files) text += golden::read_text(file);
  return text;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Prints the best of several passes over the whole text.
void measure(const char* name, const Tokenizer* tokenizer, double load_seconds, const std::string& text) {
  if (tokenizer == nullptr) {
    std::printf("%-10s not on this machine\n", name);
    return;
  }
  constexpr int passes = 5;
  double first = 0;
  double best = 0;
  size_t ids = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    ids = tokenizer->encode(text, SpecialTokens::as_text).size();
    const double speed = static_cast<double>(text.size()) / 1e6 / seconds_since(start);
    if (pass == 0) first = speed;
    best = std::max(best, speed);
  }
  std::printf("%-10s %6.1f MB/s, first pass %6.1f MB/s, %5.2f bytes a token, loaded in %.2f s\n", name, best, first,
              static_cast<double>(text.size()) / static_cast<double>(ids), load_seconds);
}

template <class F>
void measure(const char* name, F&& load, const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Tokenizer> tokenizer = load();
  measure(name, tokenizer.get(), seconds_since(start), text);
}

int run(int count, char** arguments) {
  std::string text;
  for (int i = 1; i < count; ++i) text += golden::read_text(arguments[i]);
  if (count < 2) text = repository_text();
  std::printf("%.1f MB of text\n", static_cast<double>(text.size()) / 1e6);
  measure(
      "tiny", [] { return golden::tiny_tokenizer(); }, text);
  measure(
      "smollm2",
      [] {
        const auto path = golden::default_model();
        return path.empty() ? nullptr : golden::gguf_tokenizer(path);
      },
      text);
  for (const char* name : {"qwen3", "llama3_1", "llama2"}) {
    measure(
        name, [&] { return golden::published_tokenizer(name); }, text);
  }
  return 0;
}

}  // namespace
}  // namespace canopy

int main(int count, char** arguments) {
  return canopy::run(count, arguments);
}
