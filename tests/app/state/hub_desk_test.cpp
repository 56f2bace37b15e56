// The threads that ask a hub for the window, against one on this machine.

#include "app/state/hub_desk.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>

#include "engine/base/error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/tiny_model.h"
#include "tests/hub/served_hub.h"

namespace canopy::app {
namespace {

using namespace std::chrono_literals;
using test::ServedHub;
using FetchPhase = HubDownload::Phase;

class HubDeskTest : public testing::Test {
 protected:
  HubDeskTest() {
    const std::string model = test::tiny_gguf().build();
    hub_.repos["some/Model-GGUF"] = {{"tiny-Q4_K_M.gguf", model},
                                     {"tiny-Q8_0.gguf", model + std::string(20'000, 'x')},
                                     {"mmproj-tiny.gguf", "no language model"},
                                     {"mtp-tiny.gguf", "a head"}};
    hub_.found.push_back({{"id", "some/Model-GGUF"}, {"downloads", 7}, {"tags", {"gguf", "license:mit"}}});
    open();
  }

  void open() {
    desk_ = std::make_unique<HubDesk>([this] { return HubPlace{hub_.settings(cache()), ServedHub::limits()}; });
    desk_->set_wake([this] { ++woken_; });
  }
  std::filesystem::path cache() const { return folder_.path() / "cache"; }

  void run(const HubCommand& command) { desk_->start(update(state_, command, here_, last_id_)); }
  /// Takes what the threads say until it is so.
  bool until(const std::function<bool()>& so) {
    for (int i = 0; i < 10000; ++i) {
      for (HubNews& each : desk_->take()) update(state_, std::move(each));
      if (so()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }
  bool ended(size_t which) {
    return until([&] { return !state_.downloads.at(which).is_under_way(); });
  }

  test::TempFolder folder_;
  ServedHub hub_;
  HubState state_;
  HubHere here_{"a device", 8'000'000'000, false};
  uint64_t last_id_ = 0;
  std::atomic<int> woken_ = 0;
  std::unique_ptr<HubDesk> desk_;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(HubDeskTest, SearchesAndLooksIntoWhatWasFound) {
  EXPECT_TRUE(hub_.asked().empty()) << "nothing is asked before somebody wants it";
  run(SearchHub{"tiny model"});
  ASSERT_TRUE(until([&] { return state_.searched; }));
  ASSERT_EQ(state_.found.size(), 1u) << state_.search_problem;
  EXPECT_EQ(state_.found[0].licence, "mit");
  run(LookIntoRepo{state_.found[0].repo});
  ASSERT_TRUE(until([&] { return state_.contents && !state_.contents->weighing; })) << state_.repo_problem;
  const HubContents& contents = *state_.contents;
  EXPECT_EQ(contents.licence, "apache-2.0");
  EXPECT_EQ(contents.unweighed, "");
  ASSERT_EQ(contents.offers.size(), 2u);
  EXPECT_EQ(contents.offers[0].name, "some/Model-GGUF:Q4_K_M");
  EXPECT_EQ(contents.offers[1].name, "some/Model-GGUF:Q8_0");
  EXPECT_GT(contents.offers[0].weight.needed, contents.offers[0].variant.bytes());
  EXPECT_EQ(contents.offers[1].weight.needed - contents.offers[0].weight.needed, 20'000u);
  EXPECT_EQ(contents.offers[0].weight.tokens_per_second, 0) << "this shape has no name";
  ASSERT_EQ(contents.heads.size(), 1u);
  EXPECT_EQ(contents.heads[0].path, "mtp-tiny.gguf");
  EXPECT_GT(woken_, 0);
}

TEST_F(HubDeskTest, DownloadsComeOneAfterTheOther) {
  hub_.hold_after(1);
  run(FetchModel{"some/Model-GGUF:Q8_0", ""});
  run(FetchModel{"some/Model-GGUF:Q4_K_M", ""});
  ASSERT_TRUE(until([&] { return state_.downloads[0].progress.done > 0; }));
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::runs);
  EXPECT_EQ(state_.downloads[1].phase, FetchPhase::waits);
  hub_.release();
  ASSERT_TRUE(ended(0) && ended(1));
  for (const HubDownload& each : state_.downloads) EXPECT_EQ(each.phase, FetchPhase::there) << each.problem;
  EXPECT_EQ(content_of(state_.downloads[0].path), hub_.repos["some/Model-GGUF"]["tiny-Q8_0.gguf"]);
  EXPECT_EQ(content_of(state_.downloads[1].path), hub_.repos["some/Model-GGUF"]["tiny-Q4_K_M.gguf"]);
  EXPECT_TRUE(state_.free_bytes.has_value());
}

TEST_F(HubDeskTest, AStoppedDownloadGoesOnWhereItEnded) {
  hub_.hold_after(3);
  run(FetchModel{"some/Model-GGUF:Q8_0", ""});
  ASSERT_TRUE(until([&] { return state_.downloads[0].progress.done >= 3 * 1024; }));
  run(StopFetching{state_.downloads[0].id});
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::stopped);
  hub_.release();
  run(GoOnFetching{state_.downloads[0].id});
  ASSERT_TRUE(ended(0));
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::there) << state_.downloads[0].problem;
  EXPECT_EQ(hub_.count("tiny-Q8_0.gguf bytes=0-"), 1u) << "its beginning was asked for once";
  EXPECT_EQ(content_of(state_.downloads[0].path), hub_.repos["some/Model-GGUF"]["tiny-Q8_0.gguf"]);
}

TEST_F(HubDeskTest, TheEndOfTheWindowStopsADownloadThatGoesOnLater) {
  hub_.hold_after(3);
  run(FetchModel{"some/Model-GGUF:Q8_0", ""});
  ASSERT_TRUE(until([&] { return state_.downloads[0].progress.done >= 3 * 1024; }));
  const auto start = std::chrono::steady_clock::now();
  desk_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
  hub_.release();
  HubState next;
  restore(next, unfinished(state_), last_id_);
  state_ = next;
  open();
  run(GoOnFetching{state_.downloads.at(0).id});
  ASSERT_TRUE(ended(0));
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::there) << state_.downloads[0].problem;
  EXPECT_EQ(hub_.count("tiny-Q8_0.gguf bytes=0-"), 1u);
}

TEST_F(HubDeskTest, WhatIsTakenOffTheListBeforeItsTurnIsNotFetched) {
  hub_.hold_after(1);
  run(FetchModel{"some/Model-GGUF:Q8_0", ""});
  run(FetchModel{"some/Model-GGUF:Q4_K_M", ""});
  ASSERT_TRUE(until([&] { return state_.downloads[0].progress.done > 0; }));
  run(ForgetDownload{state_.downloads[1].id});
  hub_.release();
  ASSERT_TRUE(ended(0));
  EXPECT_EQ(state_.downloads.size(), 1u);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(hub_.count("tiny-Q4_K_M.gguf"), 0u);
}

TEST_F(HubDeskTest, ErrorsAreSentences) {
  hub_.refused["gated/model"] = {403, "GatedRepo"};
  hub_.repos["large/model"] = {{"large-Q8_0.gguf", "short"}};
  hub_.listed_bytes["large-Q8_0.gguf"] = uint64_t{1} << 50;
  const auto problem_of = [&](const char* name) {
    run(FetchModel{name, ""});
    EXPECT_TRUE(ended(state_.downloads.size() - 1)) << name;
    EXPECT_EQ(state_.downloads.back().phase, FetchPhase::failed) << name;
    return state_.downloads.back().problem;
  };
  EXPECT_NE(problem_of("gated/model").find("accept its terms"), std::string::npos);
  EXPECT_NE(problem_of("not/there").find("knows no public repository"), std::string::npos);
  EXPECT_NE(problem_of("large/model").find("There is no room for the download"), std::string::npos);
  EXPECT_NE(problem_of("some/Model-GGUF:Q2_K").find("nothing of the name"), std::string::npos);
  EXPECT_FALSE(state_.unreachable) << "the hub did answer";
  run(LookIntoRepo{"gated/model"});
  ASSERT_TRUE(until([&] { return !state_.reading; }));
  EXPECT_NE(state_.repo_problem.find("accept its terms"), std::string::npos);
}

TEST_F(HubDeskTest, WithoutANetworkItSaysSo) {
  HubSettings nowhere = hub_.settings(cache());
  nowhere.endpoint = "http://127.0.0.1:1";
  desk_ = std::make_unique<HubDesk>([nowhere] { return HubPlace{nowhere, ServedHub::limits()}; });
  run(SearchHub{"tiny"});
  ASSERT_TRUE(until([&] { return state_.searched; }));
  EXPECT_TRUE(state_.unreachable);
  EXPECT_NE(state_.search_problem.find("failed"), std::string::npos) << state_.search_problem;
  run(FetchModel{"some/Model-GGUF:Q8_0", ""});
  ASSERT_TRUE(ended(0));
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::failed);
  EXPECT_TRUE(state_.unreachable);
  HubSettings offline = hub_.settings(cache());
  offline.offline = true;
  desk_ = std::make_unique<HubDesk>([offline] { return HubPlace{offline, ServedHub::limits()}; });
  state_.searched = false;
  run(SearchHub{"tiny"});
  ASSERT_TRUE(until([&] { return state_.searched; }));
  EXPECT_NE(state_.search_problem.find("HF_HUB_OFFLINE"), std::string::npos);
  EXPECT_TRUE(hub_.asked().empty());
}

TEST_F(HubDeskTest, ABadEnvironmentIsTheAnswer) {
  desk_ = std::make_unique<HubDesk>([]() -> HubPlace { throw bad_input("HF_ENDPOINT: 'x' is no address."); });
  run(SearchHub{"tiny"});
  ASSERT_TRUE(until([&] { return state_.searched; }));
  EXPECT_EQ(state_.search_problem, "HF_ENDPOINT: 'x' is no address.");
  EXPECT_FALSE(state_.unreachable);
  run(LookAtPairs{});
  ASSERT_TRUE(until([&] { return !state_.pairs.empty(); })) << state_.pairs_problem;
  EXPECT_FALSE(state_.free_bytes.has_value());
}

TEST_F(HubDeskTest, PairsAndTheRoomOnTheDiskAreToldWithoutTheHub) {
  run(LookAtPairs{});
  ASSERT_TRUE(until([&] { return !state_.pairs.empty(); })) << state_.pairs_problem;
  EXPECT_GE(state_.pairs.size(), 10u);
  EXPECT_EQ(state_.folder, cache().string());
  ASSERT_TRUE(state_.free_bytes.has_value()) << "also of a folder that is not made yet";
  EXPECT_GT(*state_.free_bytes, 0u);
  EXPECT_TRUE(hub_.asked().empty());
}

}  // namespace
}  // namespace canopy::app
