#pragma once
// Heads and block drafters, loaded with their models: all modes against plain decoding, and drafts of texts that were
// read at different times against each other.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/session/modes_rig.h"

namespace canopy::test {

/// The nodes of both, with the probabilities that they were given.
inline void expect_same_trees(const Reply& made, const Reply& expected) {
  EXPECT_EQ(made.ids, expected.ids);
  ASSERT_EQ(made.rounds.size(), expected.rounds.size());
  for (size_t i = 0; i < made.rounds.size(); ++i) {
    ASSERT_EQ(made.rounds[i].nodes.size(), expected.rounds[i].nodes.size()) << i;
    for (size_t n = 0; n < made.rounds[i].nodes.size(); ++n) {
      EXPECT_EQ(made.rounds[i].nodes[n].node.token, expected.rounds[i].nodes[n].node.token) << i << ", " << n;
      EXPECT_EQ(made.rounds[i].nodes[n].node.log_q, expected.rounds[i].nodes[n].node.log_q) << i << ", " << n;
    }
  }
}

/// A drafter of one kind, whose source is `source`, with a model one of whose layers with keys and values is `layer`.
class HeadModes : public ::testing::Test {
 protected:
  HeadModes(DraftSources source, uint32_t layer) : source_(source), layer_(layer) {}

  void open(const char* model, const std::string& drafter, uint32_t context = 512) {
    open(device_under_test(), model, drafter, context);
  }
  void open(Device& device, const char* model, const std::string& drafter, uint32_t context = 512) {
    OpenRequest request;
    request.path = golden_folder() / model;
    if (drafter.empty() || drafter == "mtp") {
      choose_drafter(drafter, request);
    } else {
      choose_drafter(golden_folder() / drafter, request);
    }
    request.cache_type = cache_under_test();
    request.context = context;
    request.self_test = false;
    if (device.info().rounds_to_8_bits) request.quantize = QuantizeOnLoad::q8_0;
    loaded_ = Engine::open(device, request, {});
  }

  Reply reply(const Way& way, std::span<const uint32_t> prompt, ReplySettings settings,
              const ReplyCallbacks& callbacks = {}) {
    settings.mode = way.mode;
    settings.budget = way.budget;
    settings.sources = way.sources;
    settings.policy = way.policy;
    return loaded_->reply(prompt, settings, callbacks);
  }
  Reply fresh(const Way& way, std::span<const uint32_t> prompt, const ReplySettings& settings) {
    loaded_->resident->clear();
    return reply(way, prompt, settings);
  }
  static ReplySettings tokens(uint32_t count, float temperature = 0) {
    ReplySettings settings;
    settings.max_tokens = count;
    settings.sampling.temperature = temperature;
    settings.sampling.seed = 7;
    return settings;
  }

  /// Features that count as there of a text whose replies asked for none.
  virtual uint32_t unasked_features(uint32_t) const { return 0; }

  Way plain() const { return {"ar", DecodeMode::ar, 1, CostPolicy::measured, source_}; }
  Way tree() const { return {"tree of 16", DecodeMode::tree, 16, CostPolicy::measured, source_}; }
  Way adaptive() const { return {"adaptive", DecodeMode::adaptive, 1, CostPolicy::measured, source_}; }

  /// Keys and values of a layer of the model.
  std::vector<float> cache() {
    std::vector<float> all;
    for (const bool values : {false, true}) {
      const std::vector<float> part = loaded_->resident->current().read_kv(layer_, values);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  /// How many tokens of the drafter were accepted in all modes, each of which writes what plain decoding does.
  size_t expect_same(std::span<const uint32_t> prompt, const ReplySettings& settings) {
    const Way ways[] = {
        {"chain", DecodeMode::chain, 1, CostPolicy::measured, source_},
        {"tree of 1", DecodeMode::tree, 1, CostPolicy::measured, source_},
        tree(),
        {"tree of 100", DecodeMode::tree, 100, CostPolicy::measured, source_},
        adaptive(),
        {"adaptive, ema", DecodeMode::adaptive, 1, CostPolicy::ema, source_},
        {"tree of 16, with the text", DecodeMode::tree, 16, CostPolicy::measured, kUsualSources},
        {"chain, with the text", DecodeMode::chain, 1, CostPolicy::measured, kUsualSources},
        {"tree of 100 from all sources", DecodeMode::tree, 100, CostPolicy::measured, kAllSources},
        {"adaptive from all sources", DecodeMode::adaptive, 1, CostPolicy::measured, kAllSources},
        {"tree of 16 from the text", DecodeMode::tree, 16, CostPolicy::measured, kFromSuffix},
    };
    const Reply expected = fresh(plain(), prompt, settings);
    const std::vector<float> kv = cache();
    size_t accepted = 0;
    for (const Way& way : ways) {
      SCOPED_TRACE(way.name);
      const Reply drafted = fresh(way, prompt, settings);
      EXPECT_EQ(drafted.ids, expected.ids);
      EXPECT_EQ(drafted.text, expected.text);
      const std::vector<float> after = cache();
      EXPECT_TRUE(after.size() == kv.size() && std::memcmp(after.data(), kv.data(), kv.size() * sizeof(float)) == 0);
      const Sequence& text = loaded_->resident->current();
      EXPECT_EQ(text.feature_length(),
                (way.sources & kFromModels) != 0 ? text.length() : unasked_features(text.length()));
      for (const RoundRecord& round : drafted.rounds) {
        for (const RoundNode& row : round.nodes) {
          EXPECT_EQ(row.node.sources & kFromModels & ~source_, 0);
          accepted += row.state == NodeState::accepted && (row.node.sources & source_) != 0 ? 1 : 0;
        }
      }
    }
    return accepted;
  }

  /// Of the open pair: what a second turn, a branch and a text that comes back draft is what they would draft alone.
  void expect_turns_as_alone() {
    const auto one = loaded_->text.encode_raw(kCode), other = loaded_->text.encode_raw("x = 1\ny = 1\nz = 1\n");
    const Reply first = fresh(tree(), one, tokens(20)), second = fresh(tree(), other, tokens(20));
    auto longer = one;
    longer.insert(longer.end(), first.ids.begin(), first.ids.end());
    longer.insert(longer.end(), other.begin(), other.end());
    auto branch = longer;
    branch[one.size() + 3] = branch[one.size() + 3] == 17 ? 18 : 17;
    const Reply third = fresh(tree(), longer, tokens(20)), fourth = fresh(tree(), branch, tokens(20));
    loaded_->resident->clear();
    for (const auto& [prompt, expected] : {std::pair{&one, &first},
                                           {&longer, &third},
                                           {&other, &second},
                                           {&branch, &fourth},
                                           {&longer, &third},
                                           {&one, &first}}) {
      expect_same_trees(reply(tree(), *prompt, tokens(20)), *expected);
    }
  }

  /// Of the open pair: so does a turn whose features were computed by a reply that kept none.
  void expect_turns_behind_plain_ones() {
    const auto prompt = loaded_->text.encode_raw(kCode);
    const Reply expected = fresh(tree(), prompt, tokens(20));
    fresh(plain(), prompt, tokens(20));
    expect_same_trees(reply(tree(), prompt, tokens(20)), expected);
  }

  /// Of the pair that is open on stepping_: a reply that is cancelled at any op has the beginning of plain decoding's
  /// text, and the next one all of it.
  void expect_cancelled_anywhere(std::span<const uint32_t> prompt, StopAtOp& stop) {
    const Reply whole = fresh(plain(), prompt, tokens(16));
    bool was_cancelled = true;
    for (uint64_t stop_at = 1; was_cancelled; stop_at += 1 + stop_at / 2) {
      SCOPED_TRACE(stop_at);
      ReplyCallbacks callbacks;
      loaded_->resident->clear();
      callbacks.stop = stop.arm(stop_at);
      const Reply cut = reply(tree(), prompt, tokens(16), callbacks);
      was_cancelled = cut.reason == FinishReason::cancelled;
      ASSERT_LE(cut.ids.size(), whole.ids.size());
      EXPECT_TRUE(std::equal(cut.ids.begin(), cut.ids.end(), whole.ids.begin()));
      EXPECT_EQ(reply(tree(), prompt, tokens(16)).ids, whole.ids);
    }
  }

  /// Of the open pair, drafts costing next to nothing: the mode adaptive asks for some, and all texts are those of
  /// plain decoding.
  void expect_same_with_cheap_drafts() {
    const CostTable costs = cheap_drafts();
    CostTable times = costs;
    times.set_drafts_by_token(loaded_->drafter->by_token());
    loaded_->speculation->replace(costs);
    loaded_->speculation->run_on(&times);
    const auto prompt = loaded_->text.encode_raw(kCode);
    EXPECT_GT(expect_same(prompt, tokens(60)), 30u);
    size_t drafted = 0;
    for (const RoundRecord& round : fresh(adaptive(), prompt, tokens(60)).rounds) drafted += round.ms.draft > 0 ? 1 : 0;
    EXPECT_GT(drafted, 5u);
    loaded_->speculation->run_on(nullptr);
  }

  const DraftSources source_;
  const uint32_t layer_;
  SteppingDevice stepping_{device_under_test()};
  std::unique_ptr<Engine> loaded_;
};

}  // namespace canopy::test
