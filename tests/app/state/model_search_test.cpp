// The search for models on its own thread: the window never waits for it.

#include "app/state/model_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>

#include "app/state/models.h"
#include "engine/base/error.h"
#include "tests/app/support/scripted_engine.h"
#include "tests/base/temp_folder.h"
#include "tests/format/split_gguf.h"
#include "tests/format/tiny_drafter.h"
#include "tests/format/tiny_model.h"

namespace canopy::app {
namespace {

using namespace std::chrono_literals;

/// Waits for the result, which comes from another thread.
ModelSearchResult wait_for(ModelSearch& search) {
  for (int i = 0; i < 20000; ++i) {
    if (auto result = search.take()) return *std::move(result);
    std::this_thread::sleep_for(1ms);
  }
  throw std::runtime_error("The search brought no result.");
}

ModelSearchResult found_for(const ModelSearchRequest& request) {
  ModelSearchResult result;
  result.target = request.target;
  return result;
}

TEST(ModelSearch, AsksASlowListerWithoutWaitingForIt) {
  std::latch asked(1), answer(1);
  std::atomic<int> woken = 0;
  ModelSearch search([&](const ModelSearchRequest& request, const std::stop_token&) {
    asked.count_down();
    answer.wait();
    return found_for(request);
  });
  search.set_wake([&] { ++woken; });
  search.start({"/models/a.gguf", {}});  // returns at once, although the lister waits for answer below
  asked.wait();
  EXPECT_FALSE(search.take().has_value());
  EXPECT_EQ(woken, 0);
  answer.count_down();
  EXPECT_EQ(wait_for(search).target, "/models/a.gguf");
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(search.take().has_value()) << "a result is taken once";
}

TEST(ModelSearch, OfSeveralRequestsTheLastOneCounts) {
  std::latch asked(1), answer(1);
  int calls = 0;
  ModelSearch search([&](const ModelSearchRequest& request, const std::stop_token&) {
    if (++calls == 1) {
      asked.count_down();
      answer.wait();
    }
    return found_for(request);
  });
  search.start({"first", {}});
  asked.wait();
  search.start({"second", {}});
  search.start({"third", {}});
  answer.count_down();
  EXPECT_EQ(wait_for(search).target, "third");
  EXPECT_EQ(calls, 2);
}

TEST(ModelSearch, AFailureIsSaidAndTheNextSearchGoesOn) {
  bool fails = true;
  ModelSearch search([&](const ModelSearchRequest& request, const std::stop_token&) {
    if (fails) throw Error(ErrorKind::unavailable, "The folder went away.");
    return found_for(request);
  });
  search.start({"a", {}});
  const ModelSearchResult failed = wait_for(search);
  EXPECT_EQ(failed.problem, "The folder went away.");
  EXPECT_EQ(failed.target, "a");
  fails = false;
  search.start({"b", {}});
  EXPECT_EQ(wait_for(search).problem, "");
}

TEST(ModelSearch, ClosingTheWindowStopsASearchUnderWay) {
  std::latch asked(1);
  {
    ModelSearch search([&](const ModelSearchRequest& request, const std::stop_token& stop) {
      asked.count_down();
      while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
      return found_for(request);
    });
    search.start({"a", {}});
    asked.wait();
  }  // the destructor stops a lister that would not end by itself
}

TEST(ModelSearch, AFolderThatDoesNotAnswerDoesNotKeepTheWindowOpen) {
  // Shared with a thread that may outlive the search.
  struct Folder {
    std::latch asked{1}, answer{1};
  };
  const auto folder = std::make_shared<Folder>();
  {
    ModelSearch search([folder](const ModelSearchRequest& request, const std::stop_token&) {
      folder->asked.count_down();
      folder->answer.wait();
      return found_for(request);
    });
    search.set_wake([folder] { ADD_FAILURE() << "nobody is there any more"; });
    search.start({"a", {}});
    folder->asked.wait();
  }  // the destructor returns although the lister does not answer
  folder->answer.count_down();
  // The lister is destroyed with its thread; after that nobody else has the folder.
  while (folder.use_count() > 1) std::this_thread::sleep_for(1ms);
}

TEST(ModelSearch, FindsWhatLiesBesideTheModel) {
  const test::TempFolder folder;
  const std::string target = folder.write("target.gguf", test::tiny_gguf().build()).string();
  folder.write("drafter.gguf", test::tiny_drafter_gguf().build());
  const test::TempFolder no_cache;
  setenv("HF_HUB_CACHE", no_cache.path().c_str(), 1);
  const ModelSearchResult result = search_models({target, {}}, {});
  unsetenv("HF_HUB_CACHE");
  const auto beside = std::ranges::find_if(result.candidates,
                                           [](const DrafterCandidate& c) { return c.path.ends_with("/drafter.gguf"); });
  ASSERT_NE(beside, result.candidates.end());
  EXPECT_EQ(result.target, target);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_TRUE(search_models({target, {}}, stopped.get_token()).candidates.empty());
}

TEST(ModelSearch, ListsAModelOnceAndKnowsThatOfTheSetUp) {
  const test::TempFolder folder, no_cache;
  const std::string target = folder.write("target.gguf", test::tiny_gguf().build()).string();
  const std::string link = (folder.path() / "link.gguf").string();
  std::filesystem::create_symlink(target, link);
  setenv("HF_HUB_CACHE", no_cache.path().c_str(), 1);
  const ModelSearchResult result = search_models({target, {link, target}, target}, {});
  unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(std::ranges::count_if(result.found, [](const FoundModel& f) { return !f.drafter; }), 1);
  EXPECT_EQ(std::ranges::count_if(result.found, [](const FoundModel& f) { return f.standard; }), 1);
}

TEST(ModelSearch, ListsWhatOtherProgramsKeepWithWhoseItIs) {
  const test::TempFolder ollama, no_cache;
  const std::string digest(64, 'a');
  std::filesystem::create_directories(ollama.path() / "blobs");
  std::filesystem::create_directories(ollama.path() / "manifests/registry.ollama.ai/library/tiny");
  ollama.write("blobs/sha256-" + digest, test::tiny_gguf().build());
  ollama.write(
      "manifests/registry.ollama.ai/library/tiny/1b",
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" + digest + R"("}]})");
  ollama.write("manifests/registry.ollama.ai/library/tiny/cut", "{");
  setenv("HF_HUB_CACHE", no_cache.path().c_str(), 1);
  setenv("OLLAMA_MODELS", ollama.path().c_str(), 1);
  const ModelSearchResult result = search_models({}, {});
  unsetenv("HF_HUB_CACHE");
  unsetenv("OLLAMA_MODELS");
  const auto named = [&](const std::string& name) { return std::ranges::find(result.found, name, &FoundModel::name); };
  const auto whole = named("tiny:1b"), cut = named("tiny:cut");
  ASSERT_NE(whole, result.found.end());
  EXPECT_EQ(whole->source, "Ollama");
  EXPECT_EQ(whole->problem, "");
  EXPECT_GT(whole->bytes, 0u);
  ASSERT_NE(cut, result.found.end());
  EXPECT_NE(cut->problem.find("is not valid JSON"), std::string::npos) << cut->problem;
}

TEST(ModelSearch, ListsACopyOfTheDrafterThatComesWithCanopyOnce) {
  const test::TempFolder folder, other, third, no_cache;
  const std::string bytes = test::tiny_drafter_gguf().build();
  const std::string one = folder.write("smollm2-135m-dflash.gguf", bytes).string();
  const std::string copy = other.write("smollm2-135m-dflash.gguf", bytes).string();
  const std::string named_so = third.write("smollm2-135m-dflash.gguf", bytes + "x").string();
  setenv("HF_HUB_CACHE", no_cache.path().c_str(), 1);
  const ModelSearchResult result = search_models({"", {one, copy, named_so}}, {});
  unsetenv("HF_HUB_CACHE");
  const auto listed = [&](const std::string& path) {
    return std::ranges::count(result.found, path, &FoundModel::path);
  };
  EXPECT_EQ(listed(one), 1);
  EXPECT_EQ(listed(copy), 0) << "the same again";
  EXPECT_EQ(listed(named_so), 1) << "another file of its name";
}

TEST(ModelSearch, ListsASplitModelOnceByWhateverPart) {
  const test::TempFolder folder, no_cache;
  const auto paths = test::write_parts(folder, "split", test::split_gguf(test::tiny_gguf(), {3, 8, 11}));
  setenv("HF_HUB_CACHE", no_cache.path().c_str(), 1);
  const ModelSearchResult result = search_models({paths[0].string(), {paths[2].string(), paths[1].string()}}, {});
  unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(std::ranges::count_if(result.found, [](const FoundModel& f) { return !f.drafter; }), 1);
}

TEST(DeviceWords, SayMemoryDriverAndHowTheSelfTestWent) {
  const std::vector<DeviceChoice> devices = test::some_devices();
  EXPECT_EQ(memory_words(devices[0]), "25.77 GB");
  EXPECT_EQ(memory_words(devices[1]), "66.57 GB shared");
  EXPECT_EQ(device_words(devices[0]), "discrete, 25.77 GB, Vulkan 1.3, RADV 25.2");
  DeviceChoice unknown{"9", "Card", "discrete", true, ""};
  EXPECT_EQ(device_words(unknown), "discrete");

  ModelsState models;
  EXPECT_EQ(self_test_words(models, devices[0]), "self-test with the first model");
  ModelReady ready = test::small_model();
  ready.device = devices[0].name;
  ready.driver = devices[0].driver;
  update(models, Event(ready));
  EXPECT_EQ(test_of(models, devices[0]), nullptr) << "a load without a self-test says nothing";
  ready.self_test = SelfTest::passed;
  ready.self_test_note = "Exactness checked on this device.";
  update(models, Event(ready));
  EXPECT_EQ(self_test_words(models, devices[0]), "passed the self-test");
  EXPECT_NE(device_details(models, devices[0]).find("Exactness checked"), std::string::npos);
  ready.self_test = SelfTest::failed;
  update(models, Event(ready));
  EXPECT_EQ(self_test_words(models, devices[0]), "failed the self-test");
  EXPECT_EQ(models.device_tests.size(), 1u) << "the newest result stands for a device and driver";
  // With another driver the result does not count any more.
  DeviceChoice updated = devices[0];
  updated.driver = "RADV 26.0";
  EXPECT_EQ(self_test_words(models, updated), "self-test with the first model");
}

}  // namespace
}  // namespace canopy::app
