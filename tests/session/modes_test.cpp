// Every mode writes the text of plain decoding and leaves the same cache, at any temperature, wherever a reply ends and
// however it is interrupted.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "engine/session/comparison.h"
#include "engine/session/reply_trace.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/session/modes_rig.h"

namespace canopy::test {
namespace {

TEST_F(ModesTest, GreedyTextAndCacheAreThoseOfPlainDecoding) {
  expect_same(encode(kCode), tokens(48));
}

TEST_F(ModesTest, WhatWasLearntOfDraftsIsKnownToTheNextLaunch) {
  for (int i = 0; i < 2; ++i) fresh(kTree, encode(kCode), tokens(60));
  const Controller& before = loaded_->speculation->controller();
  const uint64_t drafts = before.calibrator().drafts(), found = before.free_calibrator().drafts();
  const auto scale = before.calibration(3)[0].scale, shift = before.calibration(3)[0].shift;
  ASSERT_GT(drafts, 5u);
  const std::string learnt = loaded_->speculation->learnt();
  open();
  SpeculationState& next = *loaded_->speculation;
  EXPECT_EQ(next.controller().calibrator().drafts(), 0u);
  EXPECT_FALSE(next.take_learnt(learnt.substr(0, learnt.size() / 2)));
  EXPECT_FALSE(next.take_learnt(""));
  EXPECT_EQ(next.controller().calibrator().drafts(), 0u);
  ASSERT_TRUE(next.take_learnt(learnt));
  EXPECT_EQ(next.controller().calibrator().drafts(), drafts);
  EXPECT_EQ(next.controller().free_calibrator().drafts(), found);
  EXPECT_EQ(next.controller().calibration(3)[0].scale, scale);
  EXPECT_EQ(next.controller().calibration(3)[0].shift, shift);
  EXPECT_EQ(next.controller().speed().rounds(), 0) << "the times of passes are another launch's";
  drafter_ = "tiny-qwen3-q8_0.gguf";
  open();
  EXPECT_FALSE(loaded_->speculation->take_learnt(learnt)) << "of drafts of another length";
}

TEST_F(ModesTest, SeededTextIsThatOfPlainDecoding) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    ReplySettings settings = tokens(32);
    settings.sampling.temperature = 0.9f;
    settings.sampling.seed = seed;
    settings.turn = seed;
    if (seed == 2) settings.sampling.top_p = 0.9f;
    if (seed == 3) {
      settings.sampling.repetition_penalty = 1.2f;
      settings.sampling.top_k = 40;
    }
    expect_same(encode(kCode), settings);
  }
}

TEST_F(ModesTest, TextThatRepeatsIsThatOfPlainDecoding) {
  const auto prompt = encode("a = [1, 2, 3]\nb = [1, 2, 3]\nc = [1, 2, 3]\nd = [1, 2,");
  expect_same(prompt, tokens(40));
  ReplySettings settings = tokens(40);
  settings.sampling.temperature = 0.7f;
  settings.sampling.seed = 11;
  expect_same(prompt, settings);
}

/// No node costs a pass, and some are accepted; the same ids and cache as plain decoding.
TEST_F(ModesTest, AModelWithoutADrafterDraftsAllTheSame) {
  OpenRequest request;
  request.path = golden_folder() / "tiny-qwen3";
  request.cache_type = cache_under_test();
  request.context = 512;
  request.self_test = false;
  if (device_under_test().info().rounds_to_8_bits) request.quantize = QuantizeOnLoad::q8_0;
  loaded_ = Engine::open(device_under_test(), request, {});
  const auto prompt = encode("a = [1, 2, 3]\nb = [1, 2, 3]\nc = [1, 2, 3]\nd = [1, 2,");
  size_t accepted = 0;
  std::map<DraftSources, size_t> by_source;
  for (const float temperature : {0.0f, 0.8f}) {
    ReplySettings settings = tokens(60);
    settings.sampling.temperature = temperature;
    settings.sampling.seed = 3;
    const Reply plain = fresh(kPlain, prompt, settings);
    const std::vector<float> kv = cache();
    for (const Way& way : kDrafted) {
      if (way.policy == CostPolicy::paper) continue;  // needs a drafter
      SCOPED_TRACE(way.name);
      const Reply reply = fresh(way, prompt, settings);
      EXPECT_EQ(reply.ids, plain.ids);
      EXPECT_EQ(reply.text, plain.text);
      const std::vector<float> drafted = cache();
      ASSERT_EQ(drafted.size(), kv.size());
      EXPECT_EQ(std::memcmp(drafted.data(), kv.data(), kv.size() * sizeof(float)), 0);
      for (const RoundRecord& round : reply.rounds) {
        EXPECT_EQ(round.ms.draft, 0);
        for (const RoundNode& row : round.nodes) {
          EXPECT_EQ(row.node.sources == 0, row.node.depth == 0);
          EXPECT_EQ(row.node.sources & ~(way.sources & kFreeSources), 0);
          EXPECT_TRUE(round.match > 0 || (row.node.sources & kFromSuffix) == 0);
          if (row.state == NodeState::accepted) by_source[row.node.sources] += 1;
        }
        accepted += round.accepted;
      }
    }
  }
  EXPECT_GT(accepted, 20u) << "the comparison shows little";
  EXPECT_GT(by_source[kFromSuffix], 5u);
  EXPECT_GT(by_source[kFromRecycling], 5u);
  expect_error("The paper's rule needs a DFlash drafter", [&] {
    fresh({"paper", DecodeMode::adaptive, 1, CostPolicy::paper}, prompt, tokens(8));
  });
}

/// Follows the draws of a reply by given rates: which drafted tokens it must have accepted. Returns how many it
/// decided.
size_t expect_by_rates(const Reply& reply, const ReplySettings& settings) {
  size_t decided = 0;
  uint64_t place = 1;  // the first token comes out of the prompt's pass
  for (const RoundRecord& round : reply.rounds) {
    uint32_t node = 0, accepted = 0;
    bool over = false;
    for (const uint32_t token : round.emitted) {
      EXPECT_FALSE(over) << "the walk went on";
      const double draw = accept_draw(settings.sampling.seed, settings.turn, place++);
      uint32_t first = node + 1;
      while (first < round.nodes.size() && round.nodes[first].node.parent != node) ++first;
      over = first >= round.nodes.size();
      if (over) continue;  // behind a leaf comes the target's own token
      const std::vector<double>& rates = settings.accept_rates;
      const bool goes_on = draw < rates[std::min<size_t>(round.nodes[node].node.depth, rates.size() - 1)];
      EXPECT_EQ(token == round.nodes[first].node.token, goes_on);
      ++decided;
      over = !goes_on;
      if (!goes_on) continue;
      node = first;
      ++accepted;
    }
    EXPECT_LE(round.accepted, accepted) << "fewer where the reply ended";
    EXPECT_GE(round.accepted + 1, accepted);
  }
  return decided;
}

TEST_F(ModesTest, GivenRatesDecideWhatIsAcceptedInEveryModeThatDrafts) {
  const auto prompt = encode("a = [1, 2, 3]\nb = [1, 2, 3]\nc = [1, 2, 3]\nd = [1, 2,");
  ReplySettings settings = tokens(48);
  settings.accept_rates = {0.8, 0.5};
  settings.sampling.seed = 7;
  settings.turn = 2;
  for (const float temperature : {0.0f, 0.8f}) {
    settings.sampling.temperature = temperature;
    for (const Way& way : {kDrafted[0], kTree, kDrafted[4]}) {
      SCOPED_TRACE(way.name);
      const Reply reply = fresh(way, prompt, settings);
      const size_t decided = expect_by_rates(reply, settings);
      if (way.mode == DecodeMode::adaptive) continue;  // by times
      EXPECT_GT(decided, 0u);
      EXPECT_EQ(fresh(way, prompt, settings).ids, reply.ids) << "the same seed gives the same";
    }
  }
  settings.sampling.temperature = 0;
  settings.accept_rates = {0};
  for (const RoundRecord& round : fresh(kTree, prompt, settings).rounds) EXPECT_EQ(round.accepted, 0u);
  settings.accept_rates = {1};
  const Reply all = fresh(kDrafted[0], prompt, settings);
  for (size_t i = 0; i + 1 < all.rounds.size(); ++i) EXPECT_EQ(all.rounds[i].accepted + 1, all.rounds[i].width) << i;
  ReplySettings own = settings;
  own.accept_rates.clear();
  EXPECT_EQ(fresh(kPlain, prompt, settings).ids, fresh(kPlain, prompt, own).ids) << "plain decoding has no drafts";
}

TEST_F(ModesTest, GivenRatesAreCheckedAndNeverRecorded) {
  ReplySettings settings = tokens(8);
  settings.accept_rates = {0.5, 1.5};
  expect_error("A rate of acceptance is 1.5", [&] { fresh(kTree, encode(kCode), settings); });
  settings.accept_rates = {0.5};
  settings.forced = encode("x");
  expect_error("only one of both decides", [&] { fresh(kTree, encode(kCode), settings); });
  settings.forced.clear();
  const TempFolder folder;
  ReplyTrace trace(folder.path() / "reply.canopytrace", *loaded_, false);
  expect_error("is not recorded", [&] { trace.record(encode(kCode), in(kTree, settings), {}); });
}

/// A measurement of one way in three repeats.
Sweep three_repeats(const Engine& engine, const WayToDecode& way, const std::vector<uint32_t>& prompt) {
  Sweep sweep;
  sweep.subjects.emplace_back();
  sweep.contestants.push_back({way, 0});
  sweep.prompts.push_back({"p", "code", ""});
  sweep.settings.repeats = 3;
  sweep.settings.max_tokens = 40;
  const std::vector<RunnerPrompt> prompts = {RunnerPrompt{{}, prompt}};
  EXPECT_TRUE(run_comparison(sweep, {ComparisonWriter{&engine, nullptr, nullptr, {}}}, prompts, {}));
  return sweep;
}

TEST_F(ModesTest, RunsOfAMeasurementTeachNeitherEachOtherNorAChat) {
  const auto prompt = encode("a = [1, 2, 3]\nb = [1, 2, 3]\nc = [1, 2, 3]\nd = [1, 2,");
  const auto known = [&] {
    std::vector<double> numbers;
    for (const DepthCalibration& group : loaded_->speculation->controller().free_calibration()) {
      numbers.push_back(group.scale);
      numbers.push_back(group.shift);
    }
    for (uint32_t token = 0; token < loaded_->model->config().vocab; ++token)
      for (const uint32_t after : loaded_->recycling->after(token)) numbers.push_back(after);
    return numbers;
  };
  const WayToDecode way{DecodeMode::tree, 16, kFromSuffix | kFromRecycling};
  const auto taught_nothing = known();
  const Sweep first = three_repeats(*loaded_, way, prompt);
  EXPECT_EQ(known(), taught_nothing) << "a chat begins with what it knew before";
  for (const float temperature : {0.0f, 0.9f}) {
    ReplySettings settings = tokens(60);
    settings.sampling.temperature = temperature;
    fresh({"taught", DecodeMode::tree, 16, CostPolicy::measured, way.sources}, encode(kCode), settings);
    fresh({"taught", DecodeMode::tree, 16, CostPolicy::measured, way.sources}, prompt, settings);
  }
  const auto taught = known();
  EXPECT_NE(taught, taught_nothing);
  const Sweep second = three_repeats(*loaded_, way, prompt);
  EXPECT_EQ(known(), taught);
  ASSERT_EQ(first.runs.size(), 3u);
  ASSERT_EQ(second.runs.size(), 3u);
  for (const Sweep* sweep : {&first, &second}) {
    for (const MeasuredRun& run : sweep->runs) {
      EXPECT_EQ(run.rounds, first.runs[0].rounds);
      EXPECT_EQ(run.rows, first.runs[0].rows);
    }
  }
}

TEST_F(ModesTest, OnlyEarlierRepliesThatAMeasurementNamedAreAsked) {
  const auto prompt = encode(kCode);
  const TempFolder folder;
  const uint64_t vocabulary = loaded_->text.tokenizer->identity();
  loaded_->replies = std::make_unique<SuffixStore>(folder.path(), loaded_->file_name, vocabulary);
  loaded_->remember("chat", fresh(kPlain, prompt, tokens(40)).ids);
  const WayToDecode way{DecodeMode::tree, 16, kFromEarlier};
  for (const MeasuredRun& run : three_repeats(*loaded_, way, prompt).runs)
    EXPECT_EQ(run.rows, run.rounds) << "those of chats are not";
  loaded_->replies = std::make_unique<SuffixStore>(folder.path(), loaded_->file_name, vocabulary, true);
  ASSERT_EQ(loaded_->replies->replies(), 1u);
  for (const MeasuredRun& run : three_repeats(*loaded_, way, prompt).runs) EXPECT_GT(run.rows, run.rounds);
  EXPECT_EQ(loaded_->replies->replies(), 1u) << "a measurement adds none";
}

TEST_F(ModesTest, TokensDrawnOnTheDeviceAreThoseOfTheHost) {
  const auto prompt = encode("x = 1\ny = 1\nz = 1\n");
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    ReplySettings settings = tokens(32);
    settings.sampling.temperature = seed == 5 ? 0.0f : 0.9f;
    settings.sampling.seed = seed;
    settings.turn = seed;
    settings.probabilities = true;
    if (seed == 2 || seed == 4) settings.sampling.top_p = 0.9f;
    if (seed == 3 || seed == 4) settings.sampling.top_k = 40;
    if (seed >= 3) settings.sampling.repetition_penalty = 1.2f;
    if (seed >= 4) settings.sampling.frequency_penalty = 0.7f;
    if (seed == 4) settings.sampling.min_p = 0.02f;
    if (seed == 5) settings.sampling.logit_bias = {{encode("1").back(), -2.0f}};
    loaded_->draws_on_device = false;
    const Reply on_host = fresh(kPlain, prompt, settings);
    loaded_->draws_on_device = true;
    EXPECT_EQ(fresh(kPlain, prompt, settings).ids, on_host.ids);
    expect_same(prompt, settings);
  }
}

// What a round tells of its tree is the same, and more of it: of every node the token that the target would have drawn.
TEST_F(ModesTest, NodesKnowTheTokensThatTheDeviceDrew) {
  ReplySettings settings = tokens(24);
  settings.sampling.temperature = 0.9f;
  settings.sampling.presence_penalty = 0.3f;
  settings.probabilities = true;
  const auto prompt = encode(kCode);
  const Reply on_host = fresh(kTree, prompt, settings);
  loaded_->draws_on_device = true;
  const Reply drawn = fresh(kTree, prompt, settings);
  ASSERT_EQ(drawn.rounds.size(), on_host.rounds.size());
  for (size_t round = 0; round < drawn.rounds.size(); ++round) {
    const auto &nodes = drawn.rounds[round].nodes, &expected = on_host.rounds[round].nodes;
    ASSERT_EQ(nodes.size(), expected.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_EQ(nodes[i].state, expected[i].state);
      EXPECT_NE(nodes[i].target_token, RoundNode::unknown);
      if (expected[i].target_token != RoundNode::unknown) {
        EXPECT_EQ(nodes[i].target_token, expected[i].target_token);
      }
      if (!std::isnan(expected[i].log_p)) {
        EXPECT_EQ(nodes[i].log_p, expected[i].log_p);
      }
    }
  }
}

TEST_F(ModesTest, WhereTheDeviceCanDrawNoTokenTheHostSaysWhy) {
  loaded_->draws_on_device = true;
  ReplySettings settings = tokens(4);
  settings.sampling.repetition_penalty = 1e-38f;
  for (const uint32_t id : encode(kCode)) settings.sampling.logit_bias.push_back({id, 1e5f});
  expect_error("overflowed under bias and penalties", [&] { fresh(kTree, encode(kCode), settings); });
}

TEST_F(ModesTest, PenaltiesSeeThePathOfTheTree) {
  ReplySettings settings = tokens(32);
  settings.sampling.frequency_penalty = 0.7f;
  settings.sampling.presence_penalty = 0.3f;
  expect_same(encode("x = 1\ny = 1\nz = 1\n"), settings);
}

TEST_F(ModesTest, AnyTokenLimitEndsWherePlainDecodingEnds) {
  const auto prompt = encode(kCode);
  for (uint32_t limit = 1; limit <= 12; ++limit) {
    SCOPED_TRACE(limit);
    expect_same(prompt, tokens(limit));
  }
}

TEST_F(ModesTest, StopStringsInsideAnAcceptedPathEndTheTextThere) {
  const auto prompt = encode(kCode);
  const Reply whole = fresh(kPlain, prompt, tokens(40));
  for (size_t at = 2; at + 3 < whole.text.size() && at < 60; at += 9) {
    ReplySettings settings = tokens(40);
    settings.stop_strings = {whole.text.substr(at, 3)};
    SCOPED_TRACE(settings.stop_strings[0]);
    expect_same(prompt, settings);
  }
}

TEST_F(ModesTest, AFullContextEndsTheReplyAtTheSameToken) {
  const auto prompt = encode(kCode);
  for (uint32_t room = 1; room <= 10; room += 3) {
    SCOPED_TRACE(room);
    open(static_cast<uint32_t>(prompt.size()) + room);
    expect_same(prompt, tokens(200));
    EXPECT_EQ(fresh(kTree, prompt, tokens(200)).reason, FinishReason::context_full);
  }
}

TEST_F(ModesTest, CancelledAnywhereItLeavesWhatPlainDecodingCanGoOnFrom) {
  StopAtOp stop(stepping_);
  open(stepping_);
  const auto prompt = encode(kCode);
  const Reply whole = fresh(kPlain, prompt, tokens(24));
  for (const Way& way : {kTree, kDrafted[0], kDrafted[4]}) {
    SCOPED_TRACE(way.name);
    bool was_cancelled = true;
    for (uint64_t stop_at = 1; was_cancelled; stop_at += 1 + stop_at / 5) {
      SCOPED_TRACE(stop_at);
      ReplyCallbacks callbacks;
      loaded_->resident->clear();
      callbacks.stop = stop.arm(stop_at);
      const Reply cut = loaded_->reply(prompt, in(way, tokens(24)), callbacks);
      was_cancelled = cut.reason == FinishReason::cancelled;
      ASSERT_LE(cut.ids.size(), whole.ids.size());
      EXPECT_TRUE(std::equal(cut.ids.begin(), cut.ids.end(), whole.ids.begin()));
      if (!was_cancelled) break;
      auto longer = prompt;
      longer.insert(longer.end(), cut.ids.begin(), cut.ids.end());
      const auto left = static_cast<uint32_t>(whole.ids.size() - cut.ids.size());
      if (left == 0) continue;
      const Reply rest = loaded_->reply(longer, in(way, tokens(left)));
      EXPECT_TRUE(std::equal(rest.ids.begin(), rest.ids.end(), whole.ids.begin() + cut.ids.size()));
    }
  }
}

TEST_F(ModesTest, ASecondTurnReusesTextAndFeatures) {
  const std::vector<ChatTurn> first = {{"user", "def add(a, b):"}};
  const auto opening = loaded_->prompt_ids(first, "");
  const Reply one = loaded_->reply(opening, in(kTree, tokens(16)));
  auto turns = first;
  turns.push_back({"assistant", one.text});
  turns.push_back({"user", "and now class Stack:"});
  const auto prompt = loaded_->prompt_ids(turns, "");
  const Reply continued = loaded_->reply(prompt, in(kTree, tokens(16)));
  EXPECT_GE(continued.reused_tokens, opening.size());
  EXPECT_EQ(continued.ids, fresh(kPlain, prompt, tokens(16)).ids);
  EXPECT_EQ(continued.rounds.size(), fresh(kTree, prompt, tokens(16)).rounds.size());
}

TEST_F(ModesTest, ASecondTurnGoesOnFromAllThatTheFirstLeftInTheCache) {
  const std::vector<ChatTurn> first = {{"user", "def add(a, b):"}};
  const auto opening = loaded_->prompt_ids(first, "");
  ReplySettings letters = tokens(500);
  for (const char c : std::string("return a + b")) letters.forced.push_back(encode({c}).back());
  ASSERT_NE(letters.forced, encode("return a + b")) << "these are not the tokens that the text has by itself";
  for (const Way& way : {kPlain, kTree}) {
    SCOPED_TRACE(way.name);
    const Reply one = fresh(way, opening, letters);
    const auto left = loaded_->resident->current().length();
    ASSERT_EQ(left, opening.size() + one.ids.size() - 1);
    auto turns = first;
    turns.push_back({"assistant", one.text});
    turns.push_back({"user", "and now class Stack:"});
    const auto from_text = loaded_->prompt_ids(turns, "");
    turns[1].tokens = tokens_of_reply(*loaded_->text.tokenizer, one.ids, one.text);
    ASSERT_EQ(turns[1].tokens.ids, letters.forced);
    const auto prompt = loaded_->prompt_ids(turns, "");
    EXPECT_NE(prompt, from_text);
    const Reply continued = loaded_->reply(prompt, in(way, tokens(16)));
    EXPECT_EQ(continued.reused_tokens, left);
    EXPECT_EQ(continued.ids, fresh(kPlain, prompt, tokens(16)).ids);
  }
}

TEST_F(ModesTest, FeaturesThatPlainDecodingDidNotKeepAreComputedAgain) {
  const auto prompt = encode(kCode);
  const Reply plain = loaded_->reply(prompt, in(kPlain, tokens(20)));
  auto longer = prompt;
  longer.insert(longer.end(), plain.ids.begin(), plain.ids.end());
  const Reply drafted = loaded_->reply(longer, in(kTree, tokens(16)));
  EXPECT_EQ(drafted.reused_tokens, 0u);
  const Reply from_scratch = fresh(kTree, longer, tokens(16));
  EXPECT_EQ(drafted.ids, from_scratch.ids);
  ASSERT_EQ(drafted.rounds.size(), from_scratch.rounds.size());
  for (size_t i = 0; i < drafted.rounds.size(); ++i) {
    EXPECT_EQ(drafted.rounds[i].accepted, from_scratch.rounds[i].accepted) << i;
  }
}

TEST_F(ModesTest, AReplyThatGoesOnIsTheOneLongerReply) {
  const auto prompt = encode(kCode);
  ReplySettings drawn = tokens(40);
  drawn.sampling.temperature = 0.9f;
  drawn.sampling.seed = 5;
  drawn.sampling.repetition_penalty = 1.2f;
  drawn.sampling.frequency_penalty = 0.3f;
  for (const ReplySettings& whole : {tokens(40), drawn}) {
    SCOPED_TRACE(whole.sampling.temperature);
    const Reply longer = fresh(kPlain, prompt, whole);
    ASSERT_EQ(longer.ids.size(), 40u);
    for (const Way& way : {kPlain, kTree, kDrafted[0], kDrafted[4]}) {
      SCOPED_TRACE(way.name);
      for (const uint32_t limit : {1u, 2u, 7u, 20u, 39u}) {
        SCOPED_TRACE(limit);
        ReplySettings settings = whole;
        settings.max_tokens = limit;
        const Reply first = fresh(way, prompt, settings);
        ASSERT_EQ(first.ids.size(), limit);
        settings.begun = first.ids;
        settings.max_tokens = 40 - limit;
        std::string text;
        size_t stands = 0;
        ReplyCallbacks callbacks;
        callbacks.started = [&](const ReplyStart& start) { stands = start.begun_bytes; };
        callbacks.token = [&](const ReplyProgress& progress) { text += progress.text; };
        const Reply rest = loaded_->reply(prompt, in(way, settings), callbacks);
        EXPECT_EQ(rest.ids, longer.ids);
        EXPECT_EQ(rest.text, longer.text);
        EXPECT_EQ(first.text.substr(0, stands) + text, longer.text);
        EXPECT_EQ(rest.reason, FinishReason::max_tokens);
        EXPECT_EQ(rest.prompt_tokens, prompt.size());
        EXPECT_GE(rest.reused_tokens, prompt.size()) << "what is in the cache is not read again";
      }
    }
  }
}

TEST_F(ModesTest, AReplyGoesOnAcrossACharacterAndAStopStringCutInTwo) {
  const auto prompt = encode(kCode);
  ReplySettings whole = tokens(500);
  whole.forced = encode("na\u00efve \U0001F600 text, then ##END");
  whole.stop_strings = {"##END"};
  const Reply longer = fresh(kPlain, prompt, whole);
  ASSERT_EQ(longer.reason, FinishReason::stop_token);
  ASSERT_EQ(longer.text, "na\u00efve \U0001F600 text, then ");
  bool cut_a_character = false, held_a_stop = false;
  for (uint32_t limit = 1; limit < longer.ids.size(); ++limit) {
    SCOPED_TRACE(limit);
    ReplySettings settings = whole;
    settings.max_tokens = limit;
    const Reply first = fresh(kTree, prompt, settings);
    cut_a_character |= first.text.find("\uFFFD") != std::string::npos;
    held_a_stop |= first.text.ends_with("#");
    settings.begun = first.ids;
    settings.max_tokens = 500;
    std::string text;
    size_t stands = 0;
    ReplyCallbacks callbacks;
    callbacks.started = [&](const ReplyStart& start) { stands = start.begun_bytes; };
    callbacks.token = [&](const ReplyProgress& progress) { text += progress.text; };
    const Reply rest = loaded_->reply(prompt, in(kTree, settings), callbacks);
    EXPECT_EQ(rest.ids, longer.ids);
    EXPECT_EQ(rest.text, longer.text);
    EXPECT_EQ(first.text.substr(0, stands) + text, longer.text);
  }
  EXPECT_TRUE(cut_a_character);
  EXPECT_TRUE(held_a_stop);
  whole.begun = longer.ids;
  expect_error("ended by itself", [&] { loaded_->reply(prompt, in(kTree, whole)); });
}

TEST_F(ModesTest, AReplyThatRepeatsItselfEndsAtTheSameTokenAndGoesOn) {
  const auto prompt = encode(kCode);
  std::string text = "It is";
  for (int i = 0; i < 24; ++i) text += " a b,";
  ReplySettings settings = tokens(500);
  settings.forced = encode(text);
  const Reply all = fresh(kPlain, prompt, settings);
  settings.stop_loops = true;
  const Reply ended = fresh(kPlain, prompt, settings);
  EXPECT_EQ(ended.reason, FinishReason::repeats);
  ASSERT_LT(ended.ids.size(), all.ids.size());
  for (const Way& way : {kTree, kDrafted[0]}) {
    SCOPED_TRACE(way.name);
    const Reply reply = fresh(way, prompt, settings);
    EXPECT_EQ(reply.ids, ended.ids);
    EXPECT_EQ(reply.text, ended.text);
    EXPECT_EQ(reply.reason, FinishReason::repeats);
  }
  settings.begun = ended.ids;
  const Reply rest = loaded_->reply(prompt, in(kTree, settings));
  EXPECT_GT(rest.ids.size(), ended.ids.size() + 3);
  EXPECT_TRUE(std::equal(rest.ids.begin(), rest.ids.end(), all.ids.begin()));
}

TEST_F(ModesTest, AForcedReplyTakesTheTokensItWasGiven) {
  const auto prompt = encode(kCode);
  const auto text = encode("return open(path).read()\n\n\nclass Reader:\n");
  for (const Way& way : {kPlain, kTree, kDrafted[0]}) {
    SCOPED_TRACE(way.name);
    ReplySettings settings = tokens(500);
    settings.forced = text;
    const Reply reply = fresh(way, prompt, settings);
    EXPECT_EQ(reply.ids, text);
    uint32_t emitted = 1;
    for (const RoundRecord& round : reply.rounds) emitted += static_cast<uint32_t>(round.emitted.size());
    EXPECT_EQ(emitted, text.size());
  }
}

/// Log probabilities of the token after a text, from the target's own logits.
std::vector<double> log_probabilities(Model& model, std::span<const uint32_t> text) {
  RowBatch batch;
  for (uint32_t i = 0; i < text.size(); ++i) batch.add_text(text[i], i);
  const std::vector<float> logits = logits_of(model, batch, {batch.width() - 1});
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  std::vector<double> result;
  for (const float logit : logits) result.push_back(logit - std::log(sum));
  return result;
}

/// The committed text of a round, its root, and the path to a node's parent.
std::vector<uint32_t> text_before(const RoundRecord& round, size_t node, std::span<const uint32_t> text) {
  std::vector<uint32_t> path;
  for (uint32_t at = round.nodes[node].node.parent; at != 0; at = round.nodes[at].node.parent) {
    path.insert(path.begin(), round.nodes[at].node.token);
  }
  std::vector<uint32_t> before(text.begin(), text.begin() + round.context + 1);
  before.insert(before.end(), path.begin(), path.end());
  return before;
}

TEST_F(ModesTest, RecordsKnowTheTargetsProbabilityOfEveryNode) {
  const auto prompt = encode(kCode);
  for (const float temperature : {0.0f, 0.9f}) {
    ReplySettings settings = tokens(16);
    settings.sampling.temperature = temperature;
    const auto plain = fresh(kPlain, prompt, settings).ids;
    settings.probabilities = true;
    const Reply reply = fresh(kTree, prompt, settings);
    EXPECT_EQ(reply.ids, plain);
    auto text = prompt;
    text.insert(text.end(), reply.ids.begin(), reply.ids.end());
    // Of a sampled reply only some heads are computed with the pass.
    const uint32_t heads = temperature > 0 ? loaded_->model->limits().head_rows : kTree.budget + 1;
    for (size_t r = 0; r < 2; ++r) {
      const RoundRecord& round = reply.rounds.at(r);
      ASSERT_GT(round.nodes.size(), 1u);
      for (size_t i = 1; i < round.nodes.size(); i += 3) {
        if (round.nodes[i].node.parent >= heads) {
          EXPECT_TRUE(std::isnan(round.nodes[i].log_p)) << "round " << r << ", node " << i;
          continue;
        }
        const double expected =
            log_probabilities(*loaded_->model, text_before(round, i, text))[round.nodes[i].node.token];
        EXPECT_NEAR(round.nodes[i].log_p, std::min(0.0, expected), tolerance(1e-3)) << "round " << r << ", node " << i;
      }
    }
  }
}

TEST_F(ModesTest, RecordsSayWhatBecameOfEveryNode) {
  const Reply reply = fresh(kTree, encode(kCode), tokens(32));
  uint32_t position = static_cast<uint32_t>(encode(kCode).size());
  for (const RoundRecord& round : reply.rounds) {
    EXPECT_EQ(round.context, position);
    EXPECT_EQ(round.mode, DecodeMode::tree);
    ASSERT_EQ(round.nodes.size(), round.width == 1 ? 0 : round.width);
    uint32_t accepted = 0;
    for (size_t i = 1; i < round.nodes.size(); ++i) {
      const RoundNode& node = round.nodes[i];
      const RoundNode& parent = round.nodes[node.node.parent];
      const bool follows = parent.state == NodeState::accepted && parent.target_token == node.node.token;
      if (node.state == NodeState::accepted) {
        EXPECT_TRUE(follows);
        ++accepted;
      } else {
        EXPECT_EQ(node.state == NodeState::rejected, parent.state == NodeState::accepted);
      }
    }
    EXPECT_EQ(accepted, round.accepted);
    EXPECT_NO_THROW(validate(round));
    position += static_cast<uint32_t>(round.emitted.size());
  }
}

TEST_F(ModesTest, FixedModesTeachTheController) {
  const std::vector<uint32_t> prompt = encode("Once upon a time");
  for (const Way& way : {kDrafted[0], kTree}) {
    open();
    ReplySettings settings = in(way, tokens(60));
    settings.sources = kFromDflash;
    const Reply reply = loaded_->reply(prompt, settings);
    ASSERT_GT(reply.rounds.size(), 10u);
    Controller& controller = loaded_->speculation->controller();
    EXPECT_GT(controller.calibrator().drafts(), 5u) << way.name;
    EXPECT_GE(controller.hindsight().tree().size(), 17u) << way.name << ": wider trees than were verified";
    EXPECT_FALSE(controller.hindsight().chain().empty()) << way.name;
  }
}

TEST_F(ModesTest, FixedModesSayWhatOtherWidthsWouldPromiseWhereCostsAreKnown) {
  const std::vector<uint32_t> prompt = encode("Once upon a time");
  for (const Way& way : {kDrafted[0], kTree}) {
    open();
    for (const RoundRecord& round : loaded_->reply(prompt, in(way, tokens(12))).rounds) {
      EXPECT_TRUE(round.choice.candidates.empty()) << way.name << ": nothing was measured";
    }
    CostTable measured;
    for (const uint32_t context : {16u, 128u}) {
      measured.set_draft(1, context, 2);
      for (uint32_t width = 1; width <= 64; width *= 2) measured.set_verify(width, context, 4 + width);
    }
    loaded_->speculation->replace(measured);
    uint32_t drafted = 0;
    for (const RoundRecord& round : loaded_->reply(prompt, in(way, tokens(30))).rounds) {
      if (round.shape == DecodeMode::ar) continue;
      ++drafted;
      const WidthForecast* own = chosen_candidate(round);
      ASSERT_NE(own, nullptr) << way.name;
      EXPECT_NEAR(own->ms, round.predicted.total(), 1e-6);
      EXPECT_GE(own->expected, 1);
      EXPECT_GT(round.choice.candidates.back().width, round.width) << way.name;
      EXPECT_GT(round.choice.ar_tokens_per_second, 0);
      EXPECT_NO_THROW(validate(round));
    }
    EXPECT_GT(drafted, 5u);
    EXPECT_FALSE(loaded_->speculation->refreshed_table().has_value())
        << way.name << ": one width says nothing of others";
  }
}

TEST_F(ModesTest, RecordsOfThePapersRulePredictAndListWhatItVisited) {
  const Way paper = kDrafted[6];
  ASSERT_EQ(paper.policy, CostPolicy::paper);
  const Reply reply = loaded_->reply(encode("Once upon a time"), in(paper, tokens(30)));
  uint32_t drafted = 0;
  for (const RoundRecord& round : reply.rounds) {
    if (round.shape != DecodeMode::tree) continue;
    ++drafted;
    EXPECT_GT(round.predicted.draft, 0);
    EXPECT_GT(round.predicted.verify, 0);
    EXPECT_GT(round.choice.ar_tokens_per_second, 0);
    ASSERT_FALSE(round.choice.candidates.empty());
    const auto kept = std::find_if(round.choice.candidates.begin(), round.choice.candidates.end(),
                                   [&](const WidthForecast& each) { return each.width == round.width; });
    ASSERT_NE(kept, round.choice.candidates.end());
    EXPECT_NEAR(kept->ms, round.predicted.total(), 1e-6);
  }
  EXPECT_GT(drafted, 0u);
}

TEST_F(ModesTest, RefusesWhatItCannotDo) {
  const auto prompt = encode(kCode);
  ReplySettings none = in({"", DecodeMode::tree, 0}, tokens(4));
  expect_error("budget of the draft tree is 0", [&] { loaded_->reply(prompt, none); });
  ReplySettings forced = tokens(4);
  forced.forced = {1u << 30};
  expect_error("The forced reply holds token 1073741824", [&] { loaded_->reply(prompt, forced); });
  EXPECT_EQ(loaded_->reply(prompt, in(kTree, tokens(4))).ids.size(), 4u);  // and goes on
  loaded_->speculation.reset();
  expect_error("what passes cost", [&] { loaded_->reply(prompt, in(kDrafted[4], tokens(4))); });
}

// What plain passes take is measured behind a reply that had few of them. It leaves no trace in text and caches.
TEST_F(ModesTest, TimingPlainPassesChangesNothing) {
  const auto prompt = encode("def main():\n    parser = argparse.");
  const auto more = encode("def main():\n    parser = argparse.ArgumentParser()\n");
  for (const float temperature : {0.0f, 0.8f}) {
    ReplySettings settings = tokens(24);
    settings.sampling.temperature = temperature;
    for (const Way& way : {kTree, Way{"adaptive", DecodeMode::adaptive, 1}}) {
      SCOPED_TRACE(way.name);
      settings.times_plain = false;
      const Reply expected = fresh(way, prompt, settings);
      EXPECT_FALSE(expected.plain.known()) << "only where it is asked for, so never in a measurement";
      const std::vector<float> kv = cache();
      const Reply next = loaded_->reply(more, in(way, settings));
      settings.times_plain = true;
      const Reply timed = fresh(way, prompt, settings);
      EXPECT_EQ(timed.ids, expected.ids);
      EXPECT_EQ(timed.text, expected.text);
      EXPECT_EQ(cache(), kv);
      EXPECT_GE(timed.plain.passes, 3u);
      EXPECT_GT(timed.plain.ms, 0.0);
      EXPECT_EQ(timed.plain.own, static_cast<size_t>(std::ranges::count_if(timed.rounds, is_plain)) >= kEnoughPlain);
      settings.times_plain = false;
      EXPECT_EQ(loaded_->reply(more, in(way, settings)).ids, next.ids);
    }
  }
}

TEST_F(ModesTest, PlainPassesAreNotTimedWhereNobodyWaitsForThem) {
  const auto prompt = encode("import os\n");
  ReplySettings settings = in(kTree, tokens(40));
  settings.times_plain = true;
  std::stop_source stop;
  ReplyCallbacks callbacks;
  callbacks.stop = stop.get_token();
  callbacks.round = [&](const RoundRecord&) { stop.request_stop(); };
  EXPECT_FALSE(loaded_->reply(prompt, settings, callbacks).plain.known()) << "it was stopped";
  settings.max_tokens = 1;
  EXPECT_FALSE(loaded_->reply(prompt, settings).plain.known()) << "there was no round to compare";
  settings = in(kPlain, tokens(3));
  settings.times_plain = true;
  EXPECT_FALSE(loaded_->reply(prompt, settings).plain.known()) << "it is plain itself, and short";
  settings.max_tokens = 12;
  EXPECT_TRUE(loaded_->reply(prompt, settings).plain.own);
}

}  // namespace
}  // namespace canopy::test
