// What the window knows of a hub, and what its commands ask for.

#include "app/state/hub.h"

#include <gtest/gtest.h>

#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

using FetchPhase = HubDownload::Phase;

class HubStateTest : public testing::Test {
 protected:
  HubWish run(HubCommand command) { return update(state_, command, here_, last_id_); }
  const HubDownload* end(uint64_t id, FetchPhase phase, const std::string& path, const std::string& problem = "") {
    return update(state_, DownloadNews{id, phase, {}, path, problem, false, {}});
  }

  HubState state_;
  HubHere here_{"a device", 8'000'000'000, false};
  uint64_t last_id_ = 0;
};

TEST_F(HubStateTest, ASearchIsAskedForAndAnsweredOnce) {
  EXPECT_FALSE(run(SearchHub{"  "}).ask);
  const HubWish wish = run(SearchHub{"qwen3"});
  ASSERT_TRUE(wish.ask);
  EXPECT_EQ(std::get<SearchHub>(wish.ask->what).words, "qwen3");
  EXPECT_EQ(wish.ask->here.device, "a device");
  EXPECT_TRUE(state_.searching);
  const HubWish newer = run(SearchHub{"smollm2"});
  update(state_, HubSearched{wish.ask->number, {{"old/answer", 1, 0, "", true, false}}, "", false});
  EXPECT_TRUE(state_.searching) << "an answer to an older question is dropped";
  update(state_, HubSearched{newer.ask->number, {{"some/model", 1, 0, "", true, false}}, "", false});
  EXPECT_FALSE(state_.searching);
  ASSERT_EQ(state_.found.size(), 1u);
  EXPECT_EQ(state_.found[0].repo, "some/model");
  const HubWish failing = run(SearchHub{"x"});
  update(state_, HubSearched{failing.ask->number, {}, "The hub does not answer.", true});
  EXPECT_TRUE(state_.unreachable);
  EXPECT_EQ(state_.search_problem, "The hub does not answer.");
}

TEST_F(HubStateTest, ARepositoryIsReadAndLeft) {
  const HubWish wish = run(LookIntoRepo{"some/model"});
  ASSERT_TRUE(wish.ask);
  EXPECT_TRUE(state_.reading);
  HubRead read;
  read.number = wish.ask->number;
  read.contents.offers.resize(2);
  read.contents.weighing = true;
  update(state_, read);
  EXPECT_FALSE(state_.reading);
  ASSERT_TRUE(state_.contents);
  EXPECT_TRUE(state_.contents->weighing);
  read.contents.weighing = false;
  update(state_, read);
  EXPECT_FALSE(state_.contents->weighing) << "the second answer of the same question counts, too";
  const HubWish back = run(LookIntoRepo{});
  EXPECT_TRUE(back.forget_question);
  EXPECT_FALSE(back.ask);
  EXPECT_FALSE(state_.contents);
  update(state_, read);
  EXPECT_FALSE(state_.contents) << "who went back does not want it any more";
  HubRead refused;
  refused.number = run(LookIntoRepo{"gated/model"}).ask->number;
  refused.problem = "gated/model is gated.";
  update(state_, refused);
  EXPECT_FALSE(state_.contents);
  EXPECT_EQ(state_.repo_problem, "gated/model is gated.");
}

TEST_F(HubStateTest, APairIsFetchedBothAndOpenedWithItsDrafter) {
  const HubWish wish = run(FetchModel{"a/target:Q8_0", "b/drafter"});
  ASSERT_EQ(wish.fetch.size(), 2u);
  EXPECT_EQ(wish.fetch[0].name, "a/target:Q8_0");
  EXPECT_EQ(wish.fetch[1].name, "b/drafter");
  EXPECT_TRUE(run(FetchModel{"a/target:Q8_0", "b/drafter"}).fetch.empty()) << "both are under way";
  EXPECT_TRUE(state_.downloading());
  EXPECT_EQ(end(wish.fetch[0].id, FetchPhase::runs, ""), nullptr);
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::runs);
  const HubDownload* target = end(wish.fetch[0].id, FetchPhase::there, "/cache/target.gguf");
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->name, "a/target:Q8_0");
  EXPECT_EQ(fetched(state_, "b/drafter"), nullptr);
  end(wish.fetch[1].id, FetchPhase::there, "/cache/drafter");
  ASSERT_NE(fetched(state_, "b/drafter"), nullptr);
  EXPECT_EQ(fetched(state_, state_.downloads[0].drafter)->path, "/cache/drafter");
  EXPECT_FALSE(state_.downloading());
  EXPECT_TRUE(unfinished(state_).empty());
  EXPECT_TRUE(run(FetchModel{"no name", ""}).fetch.empty());
}

TEST_F(HubStateTest, AStoppedDownloadGoesOnUnderANewNumber) {
  const uint64_t first = run(FetchModel{"a/b:Q8_0", ""}).fetch.at(0).id;
  update(state_,
         DownloadNews{first, FetchPhase::runs, {"b.gguf", 400'000'000, 800'000'000, 1e7, 40.0, ""}, "", "", false, {}});
  EXPECT_EQ(download_words(state_.downloads[0]), "400 / 800 MB, 10.0 MB/s, 40 s left");
  EXPECT_FLOAT_EQ(download_share(state_.downloads[0]), 0.5f);
  const HubWish stop = run(StopFetching{});
  EXPECT_EQ(stop.stop, std::vector<uint64_t>{first});
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::stopped);
  EXPECT_TRUE(download_words(state_.downloads[0]).starts_with("Stopped at "));
  EXPECT_TRUE(run(StopFetching{}).stop.empty());
  const HubWish on = run(GoOnFetching{first});
  ASSERT_EQ(on.fetch.size(), 1u);
  EXPECT_NE(on.fetch[0].id, first);
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::waits);
  end(first, FetchPhase::stopped, "");
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::waits) << "the end of the first attempt does not end the second";
  const HubDownload* failed = end(on.fetch[0].id, FetchPhase::failed, "", "There is no room for the download.");
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(download_words(*failed), "There is no room for the download.");
  EXPECT_EQ(run(GoOnFetching{on.fetch[0].id}).fetch.size(), 1u);
  const HubWish forget = run(ForgetDownload{state_.downloads[0].id});
  EXPECT_EQ(forget.stop.size(), 1u);
  EXPECT_TRUE(state_.downloads.empty());
}

TEST_F(HubStateTest, WhatWasStoppedInTheLastMomentIsThere) {
  const uint64_t id = run(FetchModel{"a/b:Q8_0", ""}).fetch.at(0).id;
  run(StopFetching{id});
  EXPECT_EQ(end(id, FetchPhase::runs, ""), nullptr);
  EXPECT_EQ(state_.downloads[0].phase, FetchPhase::stopped);
  EXPECT_NE(end(id, FetchPhase::there, "/cache/b.gguf"), nullptr);
  EXPECT_EQ(state_.downloads[0].path, "/cache/b.gguf");
}

TEST_F(HubStateTest, UnfinishedDownloadsAreListedAtTheNextStart) {
  run(FetchModel{"a/b:Q8_0", "c/d"});
  end(state_.downloads[1].id, FetchPhase::there, "/cache/d");
  const std::vector<UnfinishedDownload> kept = unfinished(state_);
  EXPECT_EQ(kept, (std::vector<UnfinishedDownload>{{"a/b:Q8_0", "c/d"}}));
  HubState next;
  restore(next, kept, last_id_);
  ASSERT_EQ(next.downloads.size(), 1u);
  EXPECT_EQ(next.downloads[0].phase, FetchPhase::stopped);
  EXPECT_FALSE(next.downloading()) << "nothing is fetched before the user says so";
  EXPECT_EQ(update(next, GoOnFetching{next.downloads[0].id}, here_, last_id_).fetch.size(), 1u);
}

TEST_F(HubStateTest, ADrafterOfThisComputerIsFoundForAModel) {
  PairOffer offer;
  offer.pair.target = {"Qwen3-8B", "Qwen/Qwen3-8B", "", "", 0};
  offer.pair.drafter = {"Qwen3-8B-DFlash-b16", "z-lab/Qwen3-8B-DFlash-b16", "", "", 0};
  state_.pairs = {offer};
  FoundModel drafter;
  drafter.name = "z-lab/Qwen3-8B-DFlash-b16";
  drafter.path = "/cache/drafter";
  EXPECT_EQ(drafter_there(state_, {drafter}, "unsloth/Qwen3-8B-GGUF:Q4_K_M"), "/cache/drafter");
  EXPECT_EQ(drafter_there(state_, {drafter}, "unsloth/Qwen3-80B-GGUF:Q4_K_M"), "");
  EXPECT_EQ(drafter_there(state_, {}, "unsloth/Qwen3-8B-GGUF"), "");
}

TEST(HubInTheWindow, ThePageLooksAtThisComputerAndAsksNoHub) {
  ViewModel view;
  view.devices = test::some_devices();
  const Effects effects = update(view, ShellCommand(ShowPage{WindowPage::models}));
  EXPECT_TRUE(effects.search);
  ASSERT_TRUE(effects.hub.pairs);
  EXPECT_EQ(effects.hub.pairs->device, "Radeon RX 7900 XTX");
  EXPECT_EQ(effects.hub.pairs->available, uint64_t{24} << 30);
  EXPECT_FALSE(effects.hub.ask);
  EXPECT_TRUE(effects.hub.fetch.empty());
  EXPECT_FALSE(effects.sweep);
  const Effects elsewhere = update(view, ChooseDevice{"1"});
  ASSERT_TRUE(elsewhere.hub.pairs) << "what fits is another question then";
  EXPECT_TRUE(elsewhere.hub.pairs->processor);
}

TEST(HubInTheWindow, OpeningAModelLeavesThePageWithItsDrafter) {
  ViewModel view;
  update(view, ShellCommand(ShowPage{WindowPage::models}));
  view.shell.welcome = true;
  const Effects effects = update(view, HubCommand(OpenWithDrafter{"/cache/target.gguf", "/cache/drafter"}));
  ASSERT_EQ(effects.engine.size(), 1u);
  const auto& load = std::get<LoadModel>(effects.engine[0]);
  EXPECT_EQ(load.path, "/cache/target.gguf");
  EXPECT_EQ(load.drafter, "/cache/drafter");
  EXPECT_TRUE(load.draft);
  EXPECT_EQ(view.shell.page, WindowPage::rounds);
  EXPECT_FALSE(view.shell.welcome);
  update(view, ShellCommand(ShowPage{WindowPage::models}));
  update(view, OpenModel{"/models/other.gguf"});
  EXPECT_EQ(view.shell.page, WindowPage::rounds);
}

TEST(HubInTheWindow, TheMemoryOfTheLoadedModelCountsAsFree) {
  ViewModel view;
  view.devices = test::some_devices();
  view.model = test::small_model();
  view.model_state = ModelState::ready;
  view.models.memory.weights = 3'000'000'000;
  view.models.memory.available = 5'000'000'000;
  view.models.memory.budget = 24'000'000'000;
  EXPECT_EQ(hub_here(view).available, 8'000'000'000u);
  EXPECT_FALSE(hub_here(view).processor);
  view.device_selector = "1";
  EXPECT_EQ(hub_here(view).available, uint64_t{62} << 30) << "another device was chosen";
  EXPECT_TRUE(hub_here(view).processor);
}

}  // namespace
}  // namespace canopy::app
