#include "engine/base/figures.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace canopy::test {
namespace {

TEST(Figures, CountBytesAsFileManagersDo) {
  EXPECT_EQ(byte_figures(0), "0.0 kB");
  EXPECT_EQ(byte_figures(999'949), "999.9 kB");
  EXPECT_EQ(byte_figures(98'362'432), "98.4 MB");
  EXPECT_EQ(byte_figures(16'060'522'496), "16.06 GB");
}

// "needs 1.50 GB, but only 1.50 GB are available" would say nothing.
TEST(Figures, OfTwoSizesThatDifferAreNeverTheSame) {
  EXPECT_EQ(byte_figures(1'500'000'000, 1'400'000'000), "1.50 GB");
  EXPECT_EQ(byte_figures(1'500'000'001, 1'500'000'000), "1500000001 bytes");
  EXPECT_EQ(byte_figures(1'500'000'000, 1'500'000'000), "1.50 GB");
  EXPECT_EQ(byte_figures(16, 1'500'000'000), "16 bytes");
  EXPECT_EQ(byte_figures(1'000, 16), "1.0 kB");
}

// Files, memory and downloads are told in the same units, or nobody could hold one against the other.
TEST(Figures, HaveOneSystemOfUnitsInAllThatPeopleRead) {
  for (const char* part : {"app", "engine", "cuda_backend"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(CANOPY_SOURCE_DIR "/") + part)) {
      const std::filesystem::path path = entry.path();
      if (path.extension() != ".cpp" && path.extension() != ".h") continue;
      std::ifstream file(path);
      size_t number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        const std::string code = line.substr(0, line.find("// "));
        for (const char* unit : {"KiB", "MiB", "GiB", "TiB"}) {
          const size_t at = code.find(unit), quote = code.find('"');
          EXPECT_FALSE(at != std::string::npos && quote < at && code.find('"', at) != std::string::npos)
              << path.string() << ":" << number << ": " << line;
        }
      }
    }
}

TEST(Figures, RoundTimesUp) {
  EXPECT_EQ(duration_figures(0), "1 s");
  EXPECT_EQ(duration_figures(1.2), "2 s");
  EXPECT_EQ(duration_figures(59.5), "1 min 0 s");
  EXPECT_EQ(duration_figures(200), "3 min 20 s");
  EXPECT_EQ(duration_figures(3900), "1 h 5 min");
  EXPECT_EQ(duration_figures(1e300), "99 h 0 min");
}

TEST(Figures, ProgressIsInTheUnitOfTheWhole) {
  EXPECT_EQ(progress_figures(62'000'000, 98'362'432, true, 1.5), "62 / 98 MB, 2 s left");
  EXPECT_EQ(progress_figures(900'000, 98'362'432, true, -1), "1 / 98 MB");
  EXPECT_EQ(progress_figures(1'200'000'000, 8'500'000'000, true, 71), "1.2 / 8.5 GB, 1 min 11 s left");
  EXPECT_EQ(progress_figures(98'362'432, 98'362'432, true, 0.0), "98 / 98 MB");
  EXPECT_EQ(progress_figures(3, 9, false, -1), "3 of 9");
  EXPECT_EQ(progress_figures(3, 0, true, 5), "");
}

}  // namespace
}  // namespace canopy::test
