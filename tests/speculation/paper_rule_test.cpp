// BASTION's stop rule, compared with bastion_tree.json.

#include "engine/speculation/bastion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/base/expect_error.h"
#include "tests/speculation/draft_candidates.h"
#include "tests/speculation/roofline_data.h"

namespace canopy {
namespace {

using nlohmann::json;

/// Costs of the device of a golden tree: a calibrated roofline, and constants for the rest of a round.
class GoldenCost : public PassCost {
 public:
  explicit GoldenCost(const json& golden)
      : roofline_(test::golden_roofline(golden, test::golden_calibration(golden.at("calibration")))),
        draft_ms_(1e3 * golden.at("draft_latency_s").get<double>()),
        other_ms_(1e3 * golden.at("non_verify_latency_s").get<double>()) {}

  double verify_ms(uint32_t width, uint32_t context) const override { return 1e3 * roofline_.seconds(width, context); }
  double draft_ms(uint32_t, uint32_t) const override { return draft_ms_; }
  double other_ms(uint32_t) const override { return other_ms_; }

 private:
  Roofline roofline_;
  double draft_ms_;
  double other_ms_;
};

PaperRuleSettings settings_of(const json& golden) {
  PaperRuleSettings settings;
  settings.min_width = golden.at("min_tree_size");
  settings.max_width = golden.at("max_tree_size");
  if (golden.at("bucket_mode") == "doubling") {
    settings.buckets = PaperRuleSettings::Buckets::doubling;
  } else {
    settings.bucket_step = golden.at("bucket_step");
  }
  return settings;
}

void expect_golden(const json& golden, const test::Candidates& candidates, uint32_t first_candidates) {
  const uint32_t available = std::min(paper_candidates, golden.at("vocab").get<uint32_t>());
  TreeBuilder builder;
  builder.begin(golden.at("root_token"), candidates.all(first_candidates), available);
  const GoldenCost cost(golden);
  PaperRule rule(settings_of(golden), cost, 1, golden.at("context"));
  while (rule.grow(builder) == TreeStep::needs_candidates) {
    const uint32_t depth = builder.starved_depth();
    builder.extend(depth, candidates.at(depth, std::min(2 * builder.candidates_at(depth), available)));
  }

  std::vector<uint32_t> tokens, depths;
  std::vector<int32_t> parents;
  for (const TreeNode& node : builder.tree().nodes()) {
    tokens.push_back(node.token);
    depths.push_back(node.depth);
    parents.push_back(static_cast<int32_t>(node.parent));
  }
  EXPECT_EQ(tokens, golden.at("tokens").get<std::vector<uint32_t>>());
  EXPECT_EQ(parents, golden.at("parents").get<std::vector<int32_t>>());
  EXPECT_EQ(depths, golden.at("depths").get<std::vector<uint32_t>>());
  EXPECT_EQ(rule.visited(), golden.at("visited_nodes").get<uint32_t>());
  EXPECT_NEAR(rule.expected_by_width().back(), golden.at("expected_accept").get<double>(), 1e-5);
}

TEST(PaperRule, EveryGoldenTree) {
  const json file = test::golden_json("bastion_tree.json");
  const test::GoldenTensors tensors(file.at("logits_file").get<std::string>());
  ASSERT_FALSE(file.at("cases").empty());
  for (const json& golden : file.at("cases")) {
    SCOPED_TRACE(golden.at("logits").get<std::string>() + ", " + golden.at("mode").get<std::string>());
    const auto vocab = golden.at("vocab").get<uint32_t>();
    const test::Candidates candidates(tensors[golden.at("logits").get<std::string>()], vocab, paper_candidates);
    ASSERT_EQ(candidates.depths(), golden.at("depth").get<uint32_t>());
    expect_golden(golden, candidates, paper_candidates);
    expect_golden(golden, candidates, 2);  // the same result with candidates given a few at a time
  }
}

/// Verification is free up to a cliff, which costs as much as everything before it; after it, it is free again.
class CliffCost : public PassCost {
 public:
  double verify_ms(uint32_t width, uint32_t) const override { return width < 9 ? 10 : 20; }
  double draft_ms(uint32_t, uint32_t) const override { return 1; }
  double other_ms(uint32_t) const override { return 0; }
};

TEST(PaperRule, StopsBeforeACliff) {
  const uint32_t vocab = 50;
  const test::Candidates candidates(test::random_rows(7 * vocab, 3, 1.0f), vocab, vocab);
  TreeBuilder builder;
  const CliffCost cost;
  builder.begin(0, candidates.all(), vocab);
  PaperRule exact({.min_width = 1, .bucket_step = 1, .max_width = 64}, cost, 1, 100);
  EXPECT_EQ(exact.grow(builder), TreeStep::complete);
  EXPECT_EQ(builder.tree().width(), 8u);

  // A minimum width above the cliff goes on up to the widest tree; 40 is rounded down to 12 + 3 * 8.
  builder.begin(0, candidates.all(), vocab);
  PaperRule floor({.min_width = 12, .bucket_step = 8, .max_width = 40}, cost, 1, 100);
  EXPECT_EQ(floor.grow(builder), TreeStep::complete);
  EXPECT_EQ(floor.visited(), 40u);
  EXPECT_EQ(builder.tree().width(), 36u);
}

TEST(PaperRule, AWidestTreeOfTheRootAlone) {
  const test::Candidates candidates(test::random_rows(30, 3, 1.0f), 10, 10);
  TreeBuilder builder;
  builder.begin(7, candidates.all(), 10);
  const CliffCost cost;
  PaperRule rule({.min_width = 1, .bucket_step = 1, .max_width = 1}, cost, 1, 0);
  EXPECT_EQ(rule.grow(builder), TreeStep::complete);
  EXPECT_EQ(builder.tree().width(), 1u);
  EXPECT_EQ(rule.expected_by_width().back(), 1);
}

TEST(PaperRule, RefusesSettingsThatCannotBe) {
  test::expect_error("smallest width is 0", [] { validate(PaperRuleSettings{.min_width = 0}); });
  test::expect_error("smallest width is 9; 1 to 8",
                     [] { validate(PaperRuleSettings{.min_width = 9, .max_width = 8}); });
  test::expect_error("bucket step is 0", [] { validate(PaperRuleSettings{.bucket_step = 0}); });
}

}  // namespace
}  // namespace canopy
