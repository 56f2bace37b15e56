// The journal of a sweep: whatever happens, what was measured is there.

#include "engine/bench/sweep_journal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "engine/bench/sweep_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/full_disk.h"
#include "tests/base/temp_folder.h"
#include "tests/bench/sweep_samples.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

class Journal : public testing::Test {
 protected:
  static std::string content(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  test::TempFolder folder_;
  const fs::path file_ = folder_.path() / "sweep.json";
  const Sweep whole_ = test::measured_sweep();
};

TEST_F(Journal, RunsAreThereAtOnceAndTheFileInTheEnd) {
  SweepJournal journal(file_, test::some_sweep());
  for (size_t i = 0; i < whole_.runs.size(); ++i) {
    journal.add(whole_.runs[i]);
    EXPECT_EQ(unfinished_sweep(file_)->runs.size(), i + 1);
  }
  EXPECT_FALSE(fs::exists(file_));
  journal.finish(whole_);
  EXPECT_FALSE(fs::exists(journal_path(file_)));
  EXPECT_EQ(read_sweep(file_).runs.size(), whole_.runs.size());
  EXPECT_FALSE(unfinished_sweep(file_)) << "it is complete";
}

TEST_F(Journal, ATornLastLineIsLeftOut) {
  {
    SweepJournal journal(file_, test::some_sweep());
    for (const MeasuredRun& run : whole_.runs) journal.add(run);
  }
  const std::string text = content(journal_path(file_));
  const size_t header = text.find('\n') + 1;
  for (size_t size = header; size < text.size(); size += 11) {
    std::ofstream(journal_path(file_), std::ios::binary) << text.substr(0, size);
    const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size), '\n');
    EXPECT_EQ(unfinished_sweep(file_)->runs.size(), static_cast<size_t>(lines - 1));
  }
  std::ofstream(journal_path(file_), std::ios::binary) << text.substr(0, header / 2);
  EXPECT_FALSE(unfinished_sweep(file_)) << "a header that was cut off has no run behind it";
}

TEST_F(Journal, ADamagedLineInTheMiddleIsRefused) {
  {
    SweepJournal journal(file_, test::some_sweep());
    for (const MeasuredRun& run : whole_.runs) journal.add(run);
  }
  std::string text = content(journal_path(file_));
  text.replace(text.find("\"repeat\":"), 9, "\"re?eat\":");
  std::ofstream(journal_path(file_), std::ios::binary) << text;
  test::expect_error("lacks the field 'repeat'", [&] { unfinished_sweep(file_); });
}

TEST_F(Journal, GoesOnWithTheRunsOfAnEarlierOne) {
  {
    SweepJournal journal(file_, test::some_sweep());
    for (size_t i = 0; i < 5; ++i) journal.add(whole_.runs[i]);
  }
  Sweep sweep = *unfinished_sweep(file_);
  EXPECT_EQ(plan_difference(sweep, whole_), "");
  SweepJournal again(file_, sweep);
  EXPECT_EQ(unfinished_sweep(file_)->runs.size(), 5u) << "nothing is lost meanwhile";
  again.add(whole_.runs[5]);
  EXPECT_EQ(unfinished_sweep(file_)->runs.size(), 6u);
}

TEST_F(Journal, AFileThatWasStoppedGoesOnToo) {
  Sweep part = whole_;
  part.runs.resize(4);
  {
    SweepJournal journal(file_, part);
    journal.finish(part);
  }
  const auto left = unfinished_sweep(file_);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->runs.size(), 4u);
}

TEST_F(Journal, ARunAgainReplacesTheEarlierLine) {
  SweepJournal journal(file_, test::some_sweep());
  journal.add(whole_.runs[0]);
  journal.add(whole_.runs[1]);
  MeasuredRun later = whole_.runs[0];
  later.differs_at = 9;
  journal.add(later);
  const Sweep read = *unfinished_sweep(file_);
  ASSERT_EQ(read.runs.size(), 2u);
  EXPECT_EQ(read.runs[0].differs_at, 9u);
}

TEST_F(Journal, TwoProgramsDoNotWriteOne) {
  SweepJournal journal(file_, test::some_sweep());
  journal.add(whole_.runs[0]);
  test::expect_error("another program writes it", [&] { SweepJournal second(file_, test::some_sweep()); });
  journal.add(whole_.runs[1]);
  EXPECT_EQ(unfinished_sweep(file_)->runs.size(), 2u);
}

TEST_F(Journal, AFullDiskLosesNothingThatWasMeasured) {
  SweepJournal journal(file_, test::some_sweep());
  for (size_t i = 0; i < 3; ++i) journal.add(whole_.runs[i]);
  {
    const test::FullDisk full;
    test::expect_error("cannot be written", [&] {
      for (const MeasuredRun& run : whole_.runs) journal.add(run);
    });
    test::error_of([&] { journal.finish(whole_); });
  }
  EXPECT_GE(unfinished_sweep(file_)->runs.size(), 3u);
}

TEST_F(Journal, AFolderThatIsNotThereIsRefusedAtTheBeginning) {
  test::expect_error("cannot be saved",
                     [&] { SweepJournal journal(folder_.path() / "absent" / "a.json", test::some_sweep()); });
}

/// A program that is killed at any moment leaves every run that add() returned from.
TEST_F(Journal, SurvivesAKill) {
  for (int round = 0; round < 20; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      SweepJournal journal(file_, test::some_sweep(1000));
      for (uint32_t i = 0; i < 1000; ++i) {
        journal.add(test::some_run({0, 0, i}, 10));
        const char done = 1;
        if (::write(pipe[1], &done, 1) != 1) break;
      }
      ::_exit(0);
    }
    ::close(pipe[1]);
    size_t told = 0;
    char done = 0;
    while (told < static_cast<size_t>(round) + 1 && ::read(pipe[0], &done, 1) == 1) ++told;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(pipe[0]);
    EXPECT_GE(unfinished_sweep(file_)->runs.size(), told);
  }
}

}  // namespace
}  // namespace canopy
