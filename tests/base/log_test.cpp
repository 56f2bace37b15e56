#include "engine/base/error.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace canopy {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { set_log_sink({}); }
};

TEST_F(LogTest, IsSilentWithoutASink) {
  log(LogLevel::error, "nobody hears this");
}

TEST_F(LogTest, DropsWhatIsBelowTheMinimumAndFiltersTheRest) {
  std::vector<std::string> lines;
  set_log_sink(
      [&](LogLevel level, std::string_view message) {
        lines.push_back(std::string(to_string(level)) + ": " + std::string(message));
      },
      LogLevel::warning);
  log_info("too quiet");
  log_warning("name \x1b[2J\nnext");
  EXPECT_EQ(lines, std::vector<std::string>{"warning: name \\x1b[2J\nnext"});
}

TEST_F(LogTest, ASinkMayThrowAndMayLog) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    log_warning("from inside");  // dropped, no deadlock
    throw std::runtime_error("disk full");
  });
  log_warning("one");
  log_warning("two");
  EXPECT_EQ(calls, 2);
}

TEST_F(LogTest, ThreadsNeverOverlapInTheSink) {
  std::vector<std::string> lines;  // without a lock: log functions promise to call the sink from one thread at a time
  set_log_sink([&](LogLevel, std::string_view message) { lines.emplace_back(message); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 250; ++i) log_info("message");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines.size(), 1000u);
}

}  // namespace
}  // namespace canopy
