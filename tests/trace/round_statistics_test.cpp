#include "engine/trace/round_statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "engine/trace/trace_export.h"
#include "engine/trace/trace_reader.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy {
namespace {

using test::TempFolder;
using test::TraceBuilder;

/// A tree of tokens 10 -> (11, 12), 11 -> 13: two depths, three drafted nodes.
RoundRecord small_round(std::vector<uint32_t> emitted) {
  DraftTree tree(10);
  tree.add(0, 11, 0, -0.1, -0.1);
  tree.add(0, 12, 1, -1, -1);
  tree.add(1, 13, 0, -0.2, -0.3);
  RoundRecord record;
  record.shape = DecodeMode::tree;
  record.width = tree.width();
  for (const TreeNode& node : tree.nodes()) {
    record.nodes.emplace_back();
    record.nodes.back().node = node;
  }
  record.nodes[0].state = NodeState::accepted;
  record.emitted = std::move(emitted);
  record.accepted = static_cast<uint32_t>(record.emitted.size()) - 1;
  record.ms.draft = 1;
  record.ms.verify = 3;
  return record;
}

TEST(DraftedPart, FollowsTheTextThroughTheTree) {
  const DraftedPart whole = drafted_part(small_round({11, 13, 99}));
  EXPECT_EQ(whole.tokens, 2u);
  EXPECT_EQ(whole.last_node, 3u);
  EXPECT_FALSE(whole.cut);
  EXPECT_FALSE(whole.refused);  // the tree had no node below

  const DraftedPart half = drafted_part(small_round({11, 99}));
  EXPECT_EQ(half.tokens, 1u);
  EXPECT_TRUE(half.refused);

  const DraftedPart none = drafted_part(small_round({99}));
  EXPECT_EQ(none.tokens, 0u);
  EXPECT_TRUE(none.refused);
}

TEST(DraftedPart, KnowsATextThatEndsInsideTheTree) {
  const DraftedPart stop = drafted_part(small_round({11}));  // a stop token that was drafted
  EXPECT_EQ(stop.tokens, 1u);
  EXPECT_TRUE(stop.cut);
  EXPECT_FALSE(stop.refused);
}

TEST(RoundStatistics, CountsByHand) {
  RoundStatistics statistics;
  statistics.add(small_round({11, 13, 99}));  // accepts at both depths
  statistics.add(small_round({11, 99}));      // accepts at the first depth
  statistics.add(small_round({12, 99}));      // accepts at the first depth, and has no node below that one
  statistics.add(small_round({99}));          // accepts nothing
  statistics.add(small_round({11}));          // ends at a drafted token
  EXPECT_EQ(statistics.rounds(), 5u);
  EXPECT_EQ(statistics.emitted(), 9u);
  EXPECT_DOUBLE_EQ(statistics.tau(), 9.0 / 5);
  EXPECT_DOUBLE_EQ(statistics.tokens_per_second(), 1000.0 * 9 / 20);
  EXPECT_EQ(statistics.cut_rounds(), 1u);
  EXPECT_EQ(statistics.drafted(), 15u);
  EXPECT_EQ(statistics.accepted(), 5u);
  EXPECT_DOUBLE_EQ(statistics.node_utilisation(), 5.0 / 15);
  EXPECT_DOUBLE_EQ(statistics.row_utilisation(), 9.0 / 20);
  const std::map<uint32_t, uint64_t> histogram = {{0, 1}, {1, 3}, {2, 1}};
  EXPECT_EQ(statistics.accepted_histogram(), histogram);
  ASSERT_EQ(statistics.by_depth().size(), 2u);
  EXPECT_EQ(statistics.by_depth()[0], (DepthCounts{5, 4}));
  EXPECT_EQ(statistics.by_depth()[1], (DepthCounts{2, 1}));
  EXPECT_EQ(statistics.of(DecodeMode::tree).rounds, 5u);
  EXPECT_EQ(statistics.of(DecodeMode::tree).rows, 20u);
  EXPECT_EQ(statistics.of(DecodeMode::ar).rounds, 0u);
  EXPECT_DOUBLE_EQ(statistics.ms().draft, 5);
  EXPECT_DOUBLE_EQ(statistics.ms().verify, 15);
}

/// The small round with these sources of its three nodes, and a drafter that was asked where one has a part in it.
RoundRecord sourced_round(std::vector<uint32_t> emitted, std::array<DraftSources, 3> sources) {
  RoundRecord record = small_round(std::move(emitted));
  for (size_t i = 0; i < 3; ++i) record.nodes[i + 1].node.sources = sources[i];
  const bool asked = ((sources[0] | sources[1] | sources[2]) & kFromDflash) != 0;
  record.ms.draft = asked ? 1 : 0;
  record.match = 5;
  return record;
}

TEST(RoundStatistics, CountsGuessesByTheirSources) {
  RoundStatistics statistics;
  EXPECT_FALSE(statistics.has_text_drafts());
  statistics.add(sourced_round({11, 13, 99}, {kUsualSources, kFromDflash, kFromSuffix}));
  statistics.add(sourced_round({12, 99}, {kUsualSources, kFromDflash, kFromSuffix}));  // 13 stands behind a wrong guess
  statistics.add(sourced_round({11}, {kFromSuffix, kFromSuffix, kFromSuffix}));  // whether 13 was right is not known
  statistics.add(small_round({99}));  // an old recording, which does not name them
  RoundRecord plain;
  plain.emitted = {7};
  statistics.add(plain);
  EXPECT_EQ(statistics.by_source(kFromDflash), (SourceCounts{4, 1}));
  EXPECT_EQ(statistics.by_source(kFromSuffix), (SourceCounts{3, 2}));
  EXPECT_EQ(statistics.by_source(kUsualSources), (SourceCounts{2, 1}));
  EXPECT_EQ(statistics.accepted(), 4u) << "the accepted of all sets together";
  EXPECT_EQ(statistics.rounds_by(0), 1u);
  EXPECT_EQ(statistics.rounds_by(kFromDflash), 1u);
  EXPECT_EQ(statistics.rounds_by(kFromSuffix), 1u);
  EXPECT_EQ(statistics.rounds_by(kUsualSources), 2u);
  EXPECT_TRUE(statistics.has_text_drafts());
  const nlohmann::ordered_json json = to_json(statistics);
  EXPECT_EQ(json["by_source"]["dflash,suffix"].dump(), R"({"offered":2,"accepted":1,"rate":0.5})");
  EXPECT_EQ(json["rounds_by_source"].dump(), R"({"none":1,"dflash":1,"suffix":1,"dflash,suffix":2})");
}

TEST(GuessedBy, NamesADrafterThatWasAskedInVain) {
  RoundRecord plain;
  EXPECT_EQ(guessed_by(plain), 0);
  plain.ms.draft = 2;
  EXPECT_EQ(guessed_by(plain), kFromDflash);
  RoundRecord round = sourced_round({99}, {kFromSuffix, kFromSuffix, kFromSuffix});
  EXPECT_EQ(guessed_by(round), kFromSuffix);
  round.ms.draft = 2;
  EXPECT_EQ(guessed_by(round), kUsualSources);
}

TEST(GuessedBy, KnowsOfARoundWithoutItsNodesWhetherADrafterWasAsked) {
  RoundRecord round;
  round.width = 9;
  round.ms.draft = 2;
  EXPECT_EQ(guessed_by(round), kFromDflash);
  round.match = 4;
  EXPECT_EQ(guessed_by(round), kFromDflash);
  round.ms.draft = 0;
  EXPECT_EQ(guessed_by(round), kFromSuffix);
}

TEST(GuessedBy, TakesSourcesThatNobodyKnowsForTheDrafter) {
  for (const DraftSources sources : {DraftSources{0}, static_cast<DraftSources>(~kAllSources)}) {
    TreeNode node;
    node.sources = sources;
    EXPECT_EQ(proposed_by(node), kFromDflash);
  }
}

TEST(RoundStatistics, TauCountsNothingBehindAStop) {
  // Two engines may record the same round differently: one marks the path beyond the stop as accepted, the other does
  // not.
  RoundRecord short_path = small_round({11});
  RoundRecord long_path = short_path;
  long_path.accepted = 2;
  RoundStatistics a, b;
  a.add(short_path);
  b.add(long_path);
  EXPECT_DOUBLE_EQ(a.tau(), 1);
  EXPECT_EQ(a, b);
}

TEST(RoundStatistics, SumsAgreeOverRandomRounds) {
  TraceBuilder builder(8);
  builder.begin();
  RoundStatistics statistics;
  uint64_t tokens = 0;
  double ms = 0;
  for (int i = 0; i < 500; ++i) {
    const RoundRecord record = builder.any();
    EXPECT_EQ(drafted_part(record).tokens, record.accepted);
    tokens += record.emitted.size();
    ms += record.ms.total();
    statistics.add(record);
  }
  EXPECT_EQ(statistics.emitted(), tokens);
  EXPECT_NEAR(statistics.ms().total(), ms, 1e-9 * ms);
  uint64_t rounds = 0, accepted = 0, accepted_by_depth = 0;
  for (const auto& [count, times] : statistics.accepted_histogram()) {
    rounds += times;
    accepted += count * times;
  }
  EXPECT_EQ(rounds, 500u);
  EXPECT_EQ(accepted, statistics.accepted());
  uint64_t before = 500;
  for (const DepthCounts& depth : statistics.by_depth()) {
    EXPECT_LE(depth.offered, before);
    EXPECT_LE(depth.accepted, depth.offered);
    before = depth.accepted;
    accepted_by_depth += depth.accepted;
  }
  EXPECT_EQ(accepted_by_depth, accepted);
  EXPECT_EQ(statistics.by_source(kFromDflash).accepted, accepted);
  EXPECT_EQ(statistics.rounds_by(0) + statistics.rounds_by(kFromDflash), 500u);
  const auto& of = [&](DecodeMode shape) { return statistics.of(shape); };
  EXPECT_EQ(of(DecodeMode::ar).rounds + of(DecodeMode::chain).rounds + of(DecodeMode::tree).rounds, 500u);
}

TEST(RoundStatistics, ALiveRunAndItsTraceAgreeExactly) {
  const TempFolder folder;
  for (const bool redact : {false, true}) {
    TraceBuilder builder(21);
    RoundStatistics live;
    TraceWriter writer(folder.path() / "t.canopytrace", builder.header(), builder.pieces(), redact);
    writer.begin(builder.begin());
    for (int i = 0; i < 300; ++i) {
      RoundRecord record = builder.any();
      if (i % 50 == 49) record.emitted.resize(record.accepted == 0 ? 1 : record.accepted);  // ends inside its tree
      live.add(record);
      writer.append(record);
    }
    writer.finish();
    ASSERT_EQ(writer.problem(), "");
    const TraceReader trace = TraceReader::open(folder.path() / "t.canopytrace");
    RoundStatistics replayed;
    for (size_t i = 0; i < trace.rounds(); ++i) replayed.add(trace.round(i));
    EXPECT_EQ(live, replayed);
    EXPECT_EQ(to_json(live).dump(), to_json(replayed).dump());
    EXPECT_GT(live.cut_rounds(), 0u);
  }
}

TEST(RoundStatistics, ComparesPredictionsWithMeasurements) {
  RoundStatistics statistics;
  RoundRecord record = small_round({11, 99});
  record.predicted.draft = 2;
  record.predicted.verify = 3;
  statistics.add(record);
  record.predicted = {};
  statistics.add(record);  // has no prediction, so it does not count
  EXPECT_EQ(statistics.total_error().rounds, 1u);
  EXPECT_DOUBLE_EQ(statistics.total_error().mean_error(), 0.25);
  EXPECT_DOUBLE_EQ(statistics.total_error().bias(), 0.25);
  EXPECT_DOUBLE_EQ(statistics.draft_error().mean_error(), 1);
  EXPECT_DOUBLE_EQ(statistics.verify_error().mean_error(), 0);
}

/// Compared with the textbook formula, computed in two passes.
TEST(RoundStatistics, CorrelatesExpectedWithEmittedTokens) {
  TraceBuilder builder(5);
  builder.begin();
  RoundStatistics statistics;
  std::vector<double> x, y;
  for (int i = 0; i < 400; ++i) {
    const RoundRecord record = builder.any();
    statistics.add(record);
    x.push_back(chosen_candidate(record)->expected);
    y.push_back(static_cast<double>(record.emitted.size()));
  }
  RoundRecord cut = small_round({11});
  cut.choice.candidates = {{4, 1000, 1}};
  statistics.add(cut);  // it is not known what it would have emitted
  const double n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  EXPECT_EQ(statistics.expectation().pairs, x.size());
  EXPECT_NEAR(statistics.expectation().mean_x, mean_x, 1e-12 * mean_x);
  EXPECT_NEAR(statistics.expectation().value(), xy / std::sqrt(xx * yy), 1e-12);
  EXPECT_GT(statistics.expectation().value(), 0.3);  // the builder's target often agrees with the drafter
}

TEST(RoundStatistics, WithoutRoundsEverythingIsZero) {
  const nlohmann::ordered_json json = to_json(RoundStatistics());
  EXPECT_EQ(json["tau"], 0.0);
  EXPECT_EQ(json["tokens_per_second"], 0.0);
  EXPECT_EQ(json["share_of_ms"]["verify"], 0.0);
  EXPECT_EQ(json["expected_against_emitted"]["correlation"], 0.0);
}

TEST(RoundStatistics, JsonHasSharesThatSumToOne) {
  TraceBuilder builder;
  builder.begin();
  RoundStatistics statistics;
  for (int i = 0; i < 20; ++i) statistics.add(builder.any());
  const nlohmann::ordered_json json = to_json(statistics);
  double shares = 0;
  for (const auto& [stage, share] : json["share_of_ms"].items()) shares += share.get<double>();
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_EQ(json["rounds"], 20);
}

}  // namespace
}  // namespace canopy
