// Runs a harness over the inputs in folders, in every build, so that what fuzzing has found stays fixed.

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/harness.h"

namespace {

namespace fs = std::filesystem;

constexpr long most_resident_kib = 512 * 1024;

std::vector<fs::path> inputs_of(int count, char** arguments) {
  std::vector<fs::path> inputs;
  for (int i = 1; i < count; ++i) {
    if (!fs::is_directory(arguments[i])) {
      inputs.emplace_back(arguments[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(arguments[i])) inputs.push_back(entry.path());
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

long resident_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

int main(int count, char** arguments) {
  const auto inputs = inputs_of(count, arguments);
  if (inputs.empty()) {
    std::fprintf(stderr, "There is nothing to replay: give files or folders.\n");
    return EXIT_FAILURE;
  }
  for (const fs::path& path : inputs) {
    std::ifstream in(path, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    // Printed before the input runs, so that it is the last line if the program ends there.
    std::printf("%s, %zu bytes\n", path.filename().c_str(), input.size());
    std::fflush(stdout);
    canopy::fuzz::run_within_limits(input);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    canopy::fuzz::require(resident_kib() <= most_resident_kib, "an input takes at most 512 MB");
#else
    canopy::fuzz::require(resident_kib() > 0, "memory is counted");
#endif
  }
  std::printf("%zu inputs\n", inputs.size());
  return EXIT_SUCCESS;
}
