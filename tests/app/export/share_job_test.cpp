// Files made on a thread of their own: written, cancelled, failed, replaced by the next one, and left behind.

#include "app/export/shared_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "tests/base/temp_folder.h"

namespace canopy::app {
namespace {

/// A job whose news can be awaited.
class AwaitedJob {
 public:
  AwaitedJob() {
    job.set_wake([this] {
      const std::lock_guard lock(mutex_);
      woken_ = true;
      ready_.notify_all();
    });
  }

  /// The end of the file under way.
  ShareNews end() {
    while (true) {
      if (const auto news = job.take(); news && news->ended) return *news;
      std::unique_lock lock(mutex_);
      ready_.wait_for(lock, std::chrono::seconds(1), [this] { return woken_; });
      woken_ = false;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  bool woken_ = false;

 public:
  ShareJob job;  // goes before what its thread calls
};

/// Goes on until it is cancelled.
std::string endless(const ShareCallbacks& callbacks) {
  for (size_t i = 0;; ++i) callbacks.step(i % 100, 100);
}

TEST(ShareJob, WritesAFileIntoAFolderThatItMakes) {
  const test::TempFolder folder;
  AwaitedJob awaited;
  const auto path = folder.path() / "new" / "a.txt";
  awaited.job.start(path, [](const ShareCallbacks& callbacks) {
    callbacks.step(1, 2);
    return std::string("content");
  });
  const ShareNews news = awaited.end();
  EXPECT_EQ(news.path, path.string());
  EXPECT_EQ(news.problem, "");
  EXPECT_EQ(read_small_file(path, 100), "content");
}

TEST(ShareJob, SaysWhyThereIsNoFile) {
  const test::TempFolder folder;
  AwaitedJob awaited;
  awaited.job.start(folder.path() / "a",
                    [](const ShareCallbacks&) -> std::string { throw bad_input("No such round."); });
  EXPECT_EQ(awaited.end().problem, "No such round.");
  folder.write("file", "");
  awaited.job.start(folder.path() / "file" / "a", [](const ShareCallbacks&) { return std::string("x"); });
  const ShareNews news = awaited.end();
  EXPECT_NE(news.problem.find("file"), std::string::npos);
  EXPECT_EQ(news.path, "");
}

TEST(ShareJob, IsCancelledWithoutAWordAndWithoutAFile) {
  const test::TempFolder folder;
  AwaitedJob awaited;
  awaited.job.start(folder.path() / "a", endless);
  awaited.job.stop();
  const ShareNews news = awaited.end();
  EXPECT_EQ(news.problem + news.path, "");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a"));
}

TEST(ShareJob, TheNextFileAndTheEndOfTheWindowCancelIt) {
  const test::TempFolder folder;
  AwaitedJob awaited;
  awaited.job.start(folder.path() / "a", endless);
  awaited.job.start(folder.path() / "b", [](const ShareCallbacks&) { return std::string("b"); });
  EXPECT_EQ(awaited.end().path, (folder.path() / "b").string());
  awaited.job.start(folder.path() / "a", endless);
  // Destroyed while it goes on.
}

}  // namespace
}  // namespace canopy::app
