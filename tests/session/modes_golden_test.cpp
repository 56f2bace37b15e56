// Speculative decoding compared with the official implementations, prompt by prompt: generate.json. Every mode gives
// the text of plain decoding; chains and trees accept what liranringel/ddtree accepted.

#include <gtest/gtest.h>

#include <map>

#include "engine/session/engine.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

constexpr double kNearTie = 3e-5;  // tests/golden/README.md

class ModesGolden : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    json_ = std::make_unique<nlohmann::json>(golden_json("generate.json"));
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    request.cache_type = cache_under_test();
    request.context = 1024;
    request.max_width = 513;
    request.self_test = false;
    loaded_ = Engine::open(device_under_test(), request, {});
  }
  static void TearDownTestSuite() {
    loaded_.reset();
    json_.reset();
  }

  static Reply reply(const nlohmann::json& test, DecodeMode mode, uint32_t budget = 1) {
    ReplySettings settings;
    settings.mode = mode;
    settings.budget = budget;
    settings.sources = kFromDflash;
    settings.max_tokens = test.at("max_new_tokens").get<uint32_t>();
    loaded_->resident->clear();
    return loaded_->reply(test.at("prompt_ids").get<std::vector<uint32_t>>(), settings);
  }

  template <class Body>
  static void for_each_prompt(const Body& body) {
    size_t cases = 0;
    for (const auto& test : json_->at("prompts")) {
      const auto name = test.at("name").get<std::string>();
      if (!prompt_under_test(name)) continue;
      SCOPED_TRACE(name);
      ++cases;
      body(test);
    }
    EXPECT_GT(cases, 0u);
  }

  /// Compares the tokens emitted by each round, as far as rounds are comparable: near the end Canopy drafts no further
  /// than the reply may go.
  static void expect_lengths(const Reply& reply, const nlohmann::json& official) {
    const auto lengths = official.at("acceptance_lengths").get<std::vector<uint32_t>>();
    const uint32_t deepest = loaded_->drafter->max_depth();
    size_t written = 1;
    for (size_t i = 0; i < reply.rounds.size(); ++i) {
      ASSERT_LT(i, lengths.size());
      if (written + lengths[i] > reply.ids.size() || written + deepest >= reply.ids.size()) return;
      EXPECT_EQ(reply.rounds[i].emitted.size(), lengths[i]) << "round " << i;
      written += reply.rounds[i].emitted.size();
    }
  }

  static void expect_tree(const RoundRecord& round, const nlohmann::json& official) {
    EXPECT_EQ(round.context, official.at("start").get<uint32_t>());
    const auto tokens = official.at("node_token_ids").get<std::vector<uint32_t>>();
    const auto parents = official.at("parents").get<std::vector<int64_t>>();
    ASSERT_EQ(round.nodes.size(), tokens.size() + 1);
    for (size_t i = 1; i < round.nodes.size(); ++i) {
      EXPECT_EQ(round.nodes[i].node.token, tokens[i - 1]) << "node " << i;
      EXPECT_EQ(round.nodes[i].node.parent, parents[i]) << "node " << i;
    }
    std::vector<uint32_t> accepted;
    for (uint32_t i = 0; i < round.nodes.size(); ++i) {
      if (round.nodes[i].state == NodeState::accepted) accepted.push_back(i);
    }
    EXPECT_EQ(accepted, official.at("accepted_indices").get<std::vector<uint32_t>>());
    EXPECT_EQ(round.emitted.back(), official.at("next_token").get<uint32_t>());
  }

  static void expect_trees(const Reply& reply, const nlohmann::json& official) {
    const auto& rounds = official.at("rounds");
    const uint32_t deepest = loaded_->drafter->max_depth();
    size_t written = 1;
    for (size_t i = 0; i < reply.rounds.size() && written + deepest < reply.ids.size(); ++i) {
      SCOPED_TRACE("round " + std::to_string(i));
      const double gap =
          std::min(rounds.at(i).at("min_order_gap").get<double>(), rounds.at(i).at("cut_gap").get<double>());
      if (gap < kNearTie) return;  // a round of another length moves those after it
      expect_tree(reply.rounds[i], rounds.at(i));
      written += reply.rounds[i].emitted.size();
    }
  }

  static inline std::unique_ptr<nlohmann::json> json_;
  static inline std::unique_ptr<Engine> loaded_;
};

TEST_F(ModesGolden, EveryModeGivesTheSameText) {
  for_each_prompt([](const nlohmann::json& test) {
    const Reply plain = reply(test, DecodeMode::ar);
    if (cache_under_test() == CacheType::f32) {
      EXPECT_EQ(plain.ids, test.at("output_ids").get<std::vector<uint32_t>>());
    }
    EXPECT_EQ(reply(test, DecodeMode::chain).ids, plain.ids) << "chain";
    for (const uint32_t budget : budgets_under_test({1, 4, 7, 16, 64, 256, 512})) {
      const Reply drafted = reply(test, DecodeMode::tree, budget);
      EXPECT_EQ(drafted.ids, plain.ids) << "budget " << budget;
      EXPECT_EQ(drafted.reason, plain.reason) << "budget " << budget;
      EXPECT_EQ(drafted.text, plain.text) << "budget " << budget;
      EXPECT_LE(drafted.rounds.size(), plain.rounds.size()) << "budget " << budget;
    }
  });
}

TEST_F(ModesGolden, ChainsAcceptWhatTheOfficialOnesAccept) {
  if (cache_under_test() != CacheType::f32) GTEST_SKIP() << "a rounded cache may accept otherwise";
  for_each_prompt(
      [](const nlohmann::json& test) { expect_lengths(reply(test, DecodeMode::chain), test.at("dflash")); });
}

TEST_F(ModesGolden, TreesAreTheOfficialOnes) {
  if (cache_under_test() != CacheType::f32) GTEST_SKIP() << "a rounded cache may draft otherwise";
  for_each_prompt([](const nlohmann::json& test) {
    for (const auto& [budget, official] : test.at("ddtree").items()) {
      const auto nodes = static_cast<uint32_t>(std::stoul(budget));
      if (budgets_under_test({nodes}).empty()) continue;
      SCOPED_TRACE("budget " + budget);
      expect_trees(reply(test, DecodeMode::tree, nodes), official);
    }
  });
}

}  // namespace
}  // namespace canopy::test
