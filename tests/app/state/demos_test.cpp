// The recorded runs that come with Canopy, and the output of `canopy --replay --dump-json`.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "app/state/recording.h"
#include "app/state/round_log.h"
#include "app/state/view_model.h"
#include "engine/base/files.h"
#include "engine/trace/trace_export.h"
#include "tests/base/expect_error.h"

namespace canopy::app {
namespace {

TEST(Demos, AreWorthWatching) {
  ASSERT_EQ(demos().size(), 3u);
  for (const Demo& demo : demos()) {
    const auto path = find_asset(demo.asset);
    ASSERT_TRUE(path) << demo.asset;
    EXPECT_LT(std::filesystem::file_size(*path), 1'000'000u);
    const TraceLog log(*path);
    EXPECT_EQ(log.reader().notice(), "") << demo.asset;
    EXPECT_FALSE(log.reader().header().redacted);
    EXPECT_GE(log.rounds(), 40u);
    EXPECT_GT(log.statistics().tau(), 1.5) << "accepted paths are what there is to see";
    EXPECT_GE(log.statistics().node_utilisation(), 0.02);
    size_t branching = 0, texts = 0;
    for (size_t i = 0; i < log.rounds(); ++i) {
      const auto round = log.round(i);
      ASSERT_TRUE(round);
      for (const RoundNode& node : round->nodes) branching += node.node.rank > 0;
      for (const uint32_t token : round->emitted) texts += log.piece(token).has_value();
    }
    // What a text suggests seldom branches.
    EXPECT_GT(branching, log.reader().header().drafter ? 40u : 10u) << "trees, not chains";
    EXPECT_EQ(texts, log.statistics().emitted());
    EXPECT_FALSE(log.replies().front().text.empty());
    EXPECT_FALSE(log.replies().front().prompt_text.empty());
  }
}

/// It was recorded without a drafter, and needs none to be re-run.
TEST(Demos, OneIsGuessedFromTheTextAlone) {
  const auto path = find_asset(demos()[2].asset);
  ASSERT_TRUE(path);
  const TraceLog log(*path);
  EXPECT_FALSE(log.reader().header().drafter);
  EXPECT_GT(log.statistics().rounds_by(kFromSuffix), 40u);
  EXPECT_EQ(log.statistics().rounds_by(kFromDflash), 0u);
}

TEST(Demos, PlayAtAPaceOneCanFollow) {
  for (size_t i = 0; i < demos().size(); ++i) {
    ViewModel view;
    watch_demo(view, i);
    ASSERT_TRUE(view.cards.empty());
    EXPECT_EQ(view.rounds.playback.state, PlayState::playing);
    double seconds = 0;
    for (; moves(view.rounds) && seconds < 300; seconds += 0.05) advance(view.rounds, 50);
    EXPECT_EQ(view.rounds.playback.shown, view.rounds.log->rounds() - 1);
    EXPECT_GT(seconds, 5);
    EXPECT_LT(seconds, 120);
  }
}

TEST(Demos, OneThatIsNotThereChangesNothing) {
  ViewModel view;
  watch_demo(view, 99);
  EXPECT_TRUE(view.rounds.trace_path.empty());
}

// gui.md, criterion 4: this program is linked without Vulkan.
TEST(DumpTrace, SaysWhatTheWindowShows) {
  const auto path = find_asset(demos()[0].asset);
  ASSERT_TRUE(path);
  std::ostringstream out;
  dump_trace(path->string(), 3, out);
  const auto json = nlohmann::ordered_json::parse(out.str());
  const TraceLog log(*path);
  EXPECT_EQ(json["trace"], "code.canopytrace");
  EXPECT_EQ(json["rounds"], log.rounds());
  EXPECT_EQ(json["statistics"].dump(), to_json(log.statistics()).dump());
  EXPECT_EQ(json["replies"][0]["text"], log.replies()[0].text);
  EXPECT_EQ(json["round"]["width"], log.summary(3).width);
  EXPECT_EQ(json["round"]["nodes"].size(), log.summary(3).width);
}

TEST(DumpTrace, NamesTheRoundsThatThereAre) {
  const auto path = find_asset(demos()[0].asset);
  ASSERT_TRUE(path);
  const size_t rounds = TraceLog(*path).rounds();
  std::ostringstream out;
  test::expect_error("0 to " + std::to_string(rounds - 1), [&] { dump_trace(path->string(), rounds, out); });
}

}  // namespace
}  // namespace canopy::app
