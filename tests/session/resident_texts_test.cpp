// Texts that stay in the caches between replies: whatever is resident, a reply is the one of an engine that holds
// nothing, and reads no more than no earlier text has.

#include "engine/session/resident_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/base/error.h"
#include "engine/session/engine.h"
#include "tests/base/expect_error.h"
#include "tests/compute/stepping_device.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

using Ids = std::vector<uint32_t>;

constexpr DecodeMode kModes[] = {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive};

Ids joined(Ids a, std::span<const uint32_t> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Ids first(const Ids& ids, size_t count) {
  return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// Ordinary tokens of the model under test, different ones for each seed.
Ids some_tokens(uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Ids ids(count);
  for (uint32_t& id : ids) id = 3 + random() % 990;
  return ids;
}

/// Fails every run of a copy between pages while told to.
class NoCopies : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::unique_ptr<Commands> compile(std::span<const Op> ops, const std::stop_token& stop) override {
    auto commands = ForwardingDevice::compile(ops, stop);
    if (count_of<KvMoveArgs>(ops) > 0) copies_.push_back(commands.get());
    return commands;
  }
  bool run(Commands& commands, const std::stop_token& stop) override {
    if (fails && std::ranges::find(copies_, &commands) != copies_.end()) {
      ++failed;
      throw out_of_memory("The device ran out of memory.");
    }
    return ForwardingDevice::run(commands, stop);
  }
  bool fails = false;
  uint32_t failed = 0;

 private:
  std::vector<const Commands*> copies_;
};

class ResidentTextsTest : public ::testing::Test {
 protected:
  void open(uint32_t context) { open(device_under_test(), context); }
  void open(Device& device, uint32_t context) {
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    request.cache_type = cache_under_test();
    request.context = context;
    request.max_width = 32;
    request.self_test = false;
    engine_ = Engine::open(device, request, {});
    fresh_ = Engine::open(device_under_test(), request, {});
  }

  static ReplySettings in(DecodeMode mode, uint32_t tokens = 12) {
    ReplySettings settings;
    settings.mode = mode;
    settings.budget = 12;
    settings.max_tokens = tokens;
    return settings;
  }

  const Sequence& current() const { return engine_->resident->current(); }

  /// What a text had behind a reply.
  struct Text {
    Ids tokens;
    uint32_t features;
  };

  /// Writes a reply and compares it with that of an engine that holds nothing. Returns the tokens that were read.
  uint32_t read_for(const Ids& prompt, const ReplySettings& settings) {
    reply_ = engine_->reply(prompt, settings);
    texts_.push_back({{current().tokens().begin(), current().tokens().end()}, current().feature_length()});
    EXPECT_GE(current().length(), prompt.size());
    fresh_->resident->clear();
    const Reply expected = fresh_->reply(prompt, settings);
    EXPECT_EQ(reply_.ids, expected.ids);
    EXPECT_EQ(reply_.text, expected.text);
    EXPECT_EQ(reply_.reason, expected.reason);
    expect_same_cache(current(), fresh_->resident->current());
    if (settings.mode == DecodeMode::chain || settings.mode == DecodeMode::tree) {
      EXPECT_EQ(reply_.rounds.size(), expected.rounds.size()) << "other tokens were drafted";
      for (size_t i = 0; i < std::min(reply_.rounds.size(), expected.rounds.size()); ++i) {
        EXPECT_EQ(reply_.rounds[i].accepted, expected.rounds[i].accepted) << "round " << i;
        EXPECT_EQ(reply_.rounds[i].width, expected.rounds[i].width) << "round " << i;
      }
    }
    return static_cast<uint32_t>(prompt.size() + settings.begun.size()) - reply_.reused_tokens;
  }

  static void expect_same_cache(const Sequence& a, const Sequence& b) {
    ASSERT_TRUE(std::ranges::equal(a.tokens(), b.tokens()));
    for (const uint32_t layer : {0u, 7u}) {
      for (const bool values : {false, true}) EXPECT_EQ(a.read_kv(layer, values), b.read_kv(layer, values));
    }
  }

  /// The fewest tokens that have to be read for a prompt after the replies so far, where nothing was given up.
  uint32_t fewest(const Ids& prompt, DecodeMode mode) const {
    uint32_t most = 0;
    for (const Text& text : texts_) {
      const auto limit = static_cast<std::ptrdiff_t>(std::min(prompt.size() - 1, text.tokens.size()));
      const auto same = std::mismatch(prompt.begin(), prompt.begin() + limit, text.tokens.begin()).first;
      const auto shared = static_cast<uint32_t>(same - prompt.begin());
      most = std::max(most, mode == DecodeMode::ar ? shared : std::min(shared, text.features));
    }
    return static_cast<uint32_t>(prompt.size()) - most;
  }

  /// A prompt that begins like an earlier text, or like none.
  Ids next_prompt(std::mt19937& random, uint32_t longest) const {
    Ids prompt;
    if (!texts_.empty() && random() % 8 != 0) {
      const Ids& tokens = texts_[random() % texts_.size()].tokens;
      prompt = first(tokens, random() % 3 == 0 ? tokens.size() : random() % (tokens.size() + 1));
    }
    prompt = joined(std::move(prompt), some_tokens(1 + random() % 40, static_cast<uint32_t>(random())));
    if (prompt.size() > longest) prompt.resize(longest);
    return prompt;
  }

  static ReplySettings any_settings(std::mt19937& random) {
    ReplySettings settings = in(kModes[random() % 4], 1 + random() % 24);
    if (random() % 2 == 0) {
      settings.sampling.temperature = 0.8f;
      settings.sampling.seed = random() % 3;
    }
    return settings;
  }

  std::unique_ptr<Engine> engine_, fresh_;
  std::vector<Text> texts_;
  Reply reply_;
};

TEST_F(ResidentTextsTest, AReplyThatIsWrittenAgainReadsOneToken) {
  open(512);
  const Ids prompt = some_tokens(90, 1);
  for (const DecodeMode mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    engine_->resident->clear();
    ReplySettings settings = in(mode, 20);
    settings.sampling.temperature = 0.9f;
    EXPECT_EQ(read_for(prompt, settings), 90u);
    const Ids once = reply_.ids;
    settings.sampling.seed = 5;
    EXPECT_EQ(read_for(prompt, settings), 1u);
    EXPECT_NE(reply_.ids, once);
    EXPECT_EQ(engine_->resident->use().texts, 2u);
    // Each goes on behind its own reply: the last token of a reply is not in the cache yet.
    EXPECT_EQ(read_for(joined(joined(prompt, once), some_tokens(7, 2)), settings), 8u);
    EXPECT_EQ(engine_->resident->use().texts, 2u) << "the first has grown";
  }
}

TEST_F(ResidentTextsTest, AnEditedMessageAndTheWayBackReadWhatIsNew) {
  open(512);
  const Ids opening = some_tokens(70, 1);
  read_for(opening, in(DecodeMode::tree));
  const Ids one = joined(opening, reply_.ids);
  const Ids second = joined(one, some_tokens(20, 2));
  EXPECT_EQ(read_for(second, in(DecodeMode::tree)), 21u);
  const Ids two = joined(second, reply_.ids);
  // The second question, edited from its fifth token on.
  const Ids edited = joined(first(second, one.size() + 5), some_tokens(13, 3));
  EXPECT_EQ(read_for(edited, in(DecodeMode::tree)), 13u);
  const Ids other = joined(edited, reply_.ids);
  // Back to the first branch, then on in the second.
  EXPECT_EQ(read_for(joined(two, some_tokens(9, 4)), in(DecodeMode::tree)), 10u);
  EXPECT_EQ(read_for(joined(other, some_tokens(6, 5)), in(DecodeMode::chain)), 7u);
  EXPECT_EQ(engine_->resident->use().texts, 2u);
}

TEST_F(ResidentTextsTest, AnotherChatAndBackReadsWhatIsNew) {
  open(512);
  const Ids here = some_tokens(80, 1), there = some_tokens(66, 2);
  read_for(here, in(DecodeMode::tree));
  const Ids one = joined(here, reply_.ids);
  EXPECT_EQ(read_for(there, in(DecodeMode::tree)), 66u);
  const Ids two = joined(there, reply_.ids);
  EXPECT_EQ(read_for(joined(one, some_tokens(5, 3)), in(DecodeMode::tree)), 6u);
  EXPECT_EQ(read_for(joined(two, some_tokens(5, 4)), in(DecodeMode::tree)), 6u);
}

// "Same text as plain decoding" and what the chat does after it.
TEST_F(ResidentTextsTest, ACheckInModeArReadsOneTokenAndCostsTheChatNothing) {
  open(512);
  const Ids prompt = some_tokens(100, 1);
  read_for(prompt, in(DecodeMode::tree, 30));
  const Ids ids = reply_.ids;
  const uint32_t pages = engine_->resident->use().used;
  EXPECT_EQ(read_for(prompt, in(DecodeMode::ar, 30)), 1u);
  EXPECT_EQ(reply_.ids, ids);
  EXPECT_EQ(current().feature_length(), current().length());
  EXPECT_EQ(engine_->resident->use().texts, 1u);
  EXPECT_EQ(engine_->resident->use().used, pages);
  EXPECT_EQ(read_for(joined(joined(prompt, ids), some_tokens(4, 2)), in(DecodeMode::tree)), 5u);
}

TEST_F(ResidentTextsTest, AReplyThatGoesOnReadsItsLastToken) {
  open(512);
  const Ids prompt = some_tokens(40, 1);
  read_for(prompt, in(DecodeMode::tree, 9));
  const Ids ids = reply_.ids;
  read_for(some_tokens(30, 2), in(DecodeMode::tree));
  ReplySettings more = in(DecodeMode::tree, 9);
  more.begun = ids;
  EXPECT_EQ(read_for(prompt, more), 1u);
  EXPECT_EQ(reply_.ids.size(), 18u);
}

TEST_F(ResidentTextsTest, FeaturesThatAreMissingAreMadeAnewAndNoMore) {
  open(512);
  const Ids prompt = some_tokens(60, 1);
  read_for(prompt, in(DecodeMode::tree, 8));
  const Ids plain = joined(joined(prompt, reply_.ids), some_tokens(30, 2));
  EXPECT_EQ(read_for(plain, in(DecodeMode::ar, 8)), 31u);
  const uint32_t known = current().feature_length();
  EXPECT_EQ(known, 67u);
  const Ids drafted = joined(joined(plain, reply_.ids), some_tokens(3, 3));
  EXPECT_EQ(read_for(drafted, in(DecodeMode::tree, 8)), drafted.size() - known);
  EXPECT_EQ(current().feature_length(), current().length());
  EXPECT_EQ(engine_->resident->use().texts, 1u);
}

TEST_F(ResidentTextsTest, RandomWalksReadNoMoreThanTheyMust) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    open(2048);
    texts_.clear();
    std::mt19937 random(seed);
    for (uint32_t step = 0; step < 14; ++step) {
      SCOPED_TRACE("walk " + std::to_string(seed) + ", step " + std::to_string(step));
      const Ids prompt = next_prompt(random, 300);
      const ReplySettings settings = any_settings(random);
      const uint32_t must = fewest(prompt, settings.mode);
      EXPECT_EQ(read_for(prompt, settings), must) << to_string(settings.mode);
      ASSERT_FALSE(HasFailure());
    }
    ASSERT_LT(engine_->resident->use().used, engine_->resident->use().pages) << "nothing had to be given up";
  }
}

TEST_F(ResidentTextsTest, RandomWalksThroughFewPagesGiveUpTextsAndNoReply) {
  uint32_t given_up = 0;
  for (uint32_t seed = 11; seed <= 14; ++seed) {
    open(200);
    texts_.clear();
    std::mt19937 random(seed);
    for (uint32_t step = 0; step < 30; ++step) {
      SCOPED_TRACE("walk " + std::to_string(seed) + ", step " + std::to_string(step));
      const Ids prompt = next_prompt(random, 199);
      const ReplySettings settings = any_settings(random);
      const uint32_t must = fewest(prompt, settings.mode);
      const uint32_t read = read_for(prompt, settings);
      EXPECT_GE(read, must);
      given_up += read > must ? 1 : 0;
      const CacheUse use = engine_->resident->use();
      EXPECT_LE(use.used, 4u);
      EXPECT_LE(use.shared, use.used);
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(given_up, 10u) << "the cache was never short";
}

TEST_F(ResidentTextsTest, WalksWithRepliesThatAreCancelledAnywhere) {
  SteppingDevice stepping(device_under_test());
  StopAtOp stop(stepping);
  open(stepping, 200);
  std::mt19937 random(21);
  uint32_t cancelled = 0;
  for (uint32_t step = 0; step < 40; ++step) {
    SCOPED_TRACE(step);
    const Ids prompt = next_prompt(random, 180);
    const ReplySettings settings = any_settings(random);
    ReplyCallbacks callbacks;
    callbacks.stop = stop.arm(1 + random() % 1500);
    const Reply cut = engine_->reply(prompt, settings, callbacks);
    cancelled += cut.reason == FinishReason::cancelled ? 1 : 0;
    stop.arm(0);
    read_for(next_prompt(random, 180), any_settings(random));
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(cancelled, 10u);
}

TEST_F(ResidentTextsTest, CountsEachPageOnce) {
  open(512);
  EXPECT_EQ(engine_->resident->use().pages, 8u);
  EXPECT_EQ(engine_->resident->use().page_positions, 64u);
  EXPECT_EQ(engine_->resident->use().used, 0u);
  EXPECT_EQ(engine_->resident->use().texts, 0u);
  const Ids prompt = some_tokens(140, 1);
  ReplySettings settings = in(DecodeMode::tree, 10);
  settings.sampling.temperature = 0.9f;
  read_for(prompt, settings);
  CacheUse use = engine_->resident->use();
  EXPECT_EQ(use.used, 3u);
  EXPECT_EQ(use.shared, 0u);
  EXPECT_EQ(use.texts, 1u);
  settings.sampling.seed = 7;
  read_for(prompt, settings);
  use = engine_->resident->use();
  EXPECT_EQ(use.used, 4u) << "two pages in common, two of their own";
  EXPECT_EQ(use.shared, 2u);
  EXPECT_EQ(use.texts, 2u);
  engine_->resident->clear();
  EXPECT_EQ(engine_->resident->use().used, 0u);
  EXPECT_EQ(engine_->resident->use().texts, 0u);
}

TEST_F(ResidentTextsTest, GivesUpTheEndOfWhatWasUsedLongestAgo) {
  open(320);  // five pages
  const Ids a = some_tokens(180, 1), b = some_tokens(55, 2);
  read_for(a, in(DecodeMode::ar, 2));  // three pages
  read_for(b, in(DecodeMode::ar, 2));  // one
  const Ids longer = joined(b, reply_.ids);
  read_for(some_tokens(120, 3), in(DecodeMode::ar, 2));  // two, one more than there are
  EXPECT_EQ(engine_->resident->use().used, 5u);
  EXPECT_EQ(read_for(longer, in(DecodeMode::ar, 2)), 1u) << "was used later";
  EXPECT_EQ(read_for(a, in(DecodeMode::ar, 2)), 180u - 128u) << "two pages of it stayed";
}

TEST_F(ResidentTextsTest, ATextOfTheWholeContextIsNeverRefused) {
  open(256);
  for (const DecodeMode mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    for (uint32_t i = 0; i < 3; ++i) read_for(some_tokens(70, 10 + i), in(mode));
    const Ids prompt = some_tokens(240, 1);
    read_for(prompt, in(mode, 100));
    EXPECT_EQ(reply_.reason, FinishReason::context_full);
    read_for(prompt, in(mode, 8));  // a fork of it
    read_for(joined(first(prompt, 130), some_tokens(100, 2)), in(mode, 8));
  }
}

TEST_F(ResidentTextsTest, KeepsABoundedNumberOfTexts) {
  open(2048);
  const auto prompt = [](uint32_t i) { return some_tokens(4, 100 + i); };
  constexpr uint32_t most = ResidentTexts::kMost;
  for (uint32_t i = 0; i < most + 3; ++i) engine_->reply(prompt(i), in(DecodeMode::ar, 2));
  EXPECT_EQ(engine_->resident->use().texts, most);
  EXPECT_EQ(engine_->reply(prompt(3), in(DecodeMode::ar, 2)).reused_tokens, 3u) << "the oldest that there is";
  EXPECT_EQ(engine_->reply(prompt(2), in(DecodeMode::ar, 2)).reused_tokens, 0u) << "gone";
}

TEST_F(ResidentTextsTest, WhatIsRefusedLeavesTheTextsAsTheyWere) {
  open(128);
  const Ids prompt = some_tokens(50, 1);
  read_for(prompt, in(DecodeMode::tree));
  const uint32_t length = current().length();
  expect_error("empty", [&] { engine_->reply({}, in(DecodeMode::tree)); });
  expect_error("holds only 128", [&] { engine_->reply(some_tokens(129, 2), in(DecodeMode::tree)); });
  expect_error("below 1010", [&] { engine_->reply(Ids{4, 5000}, in(DecodeMode::tree)); });
  expect_error("1 or more", [&] { engine_->reply(prompt, in(DecodeMode::tree, 0)); });
  EXPECT_EQ(current().length(), length);
  EXPECT_EQ(engine_->resident->use().texts, 1u);
}

TEST_F(ResidentTextsTest, MemoryThatRunsOutInTheMiddleOfAForkMeansReadingThePageAnew) {
  for (const DecodeMode mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    NoCopies device(device_under_test());
    open(device, 512);
    const Ids prompt = some_tokens(90, 1);
    ReplySettings settings = in(mode, 20);
    settings.sampling.temperature = 0.9f;
    read_for(prompt, settings);
    const Ids once = reply_.ids;
    device.fails = true;
    settings.max_tokens = 1;  // a round with a tree moves K/V too
    EXPECT_EQ(read_for(joined(first(prompt, 85), some_tokens(2, 2)), settings), 87u - 64u);
    EXPECT_EQ(device.failed, 1u);
    device.fails = false;
    EXPECT_EQ(read_for(joined(joined(prompt, once), some_tokens(3, 2)), settings), 4u) << "the other text is whole";
  }
}

/// Lost, until it is told otherwise, after so many passes, copies, writes and reads.
class Fragile : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool run(Commands& commands, const std::stop_token& stop) override {
    count();
    return ForwardingDevice::run(commands, stop);
  }
  void start(Commands& commands) override {
    count();
    ForwardingDevice::start(commands);
  }
  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    count();
    ForwardingDevice::write(to, offset, from);
  }
  void read_all(std::span<const BufferRead> reads) override {
    count();
    ForwardingDevice::read_all(reads);
  }
  static constexpr int kNever = 1'000'000'000;
  int calls_left = kNever;

 private:
  void count() {
    if (calls_left-- <= 0) throw Error(ErrorKind::device_lost, "The device was lost.");
  }
};

// A real device stays lost and takes all texts with it; that the others are whole shows that nothing is half done.
TEST_F(ResidentTextsTest, ADeviceLostAtAnyCallOfAForkLeavesTextsThatHoldWhatTheySay) {
  Fragile device(device_under_test());
  const Ids prompt = some_tokens(75, 1), other = joined(first(prompt, 70), some_tokens(4, 2));
  bool lost = true;
  for (int calls = 0; lost; ++calls) {
    SCOPED_TRACE(calls);
    ASSERT_LT(calls, 1000);
    open(device, 256);
    read_for(prompt, in(DecodeMode::tree, 8));
    const Ids once = joined(prompt, reply_.ids);
    device.calls_left = calls;
    try {
      engine_->reply(other, in(DecodeMode::tree, 3));
      lost = false;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::device_lost);
    }
    device.calls_left = Fragile::kNever;
    read_for(joined(once, some_tokens(2, 3)), in(DecodeMode::tree, 8));
    read_for(joined(other, some_tokens(2, 4)), in(DecodeMode::chain, 8));
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace canopy::test
