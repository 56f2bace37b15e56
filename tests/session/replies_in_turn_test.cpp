// Replies that are written by turns: each is the one of an engine that writes nothing else, whatever the others take of
// the caches meanwhile.

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "engine/session/engine.h"
#include "engine/session/reply_writer.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

using TurnIds = std::vector<uint32_t>;

TurnIds turn_tokens(uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  TurnIds ids(count);
  for (uint32_t& id : ids) id = 3 + random() % 990;
  return ids;
}

/// A reply that is asked for, and what came of it.
struct Asked {
  TurnIds prompt;
  ReplySettings settings;
  uint64_t owner = 1;
  ReplyCallbacks callbacks = {};
  std::unique_ptr<ReplyWriter> writer = {};
  bool over = false;
  Reply reply = {};
};

class RepliesInTurn : public ::testing::Test {
 protected:
  void open(uint32_t context, uint32_t texts, bool drafter = true) {
    memories_.clear();
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    if (drafter) request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    request.cache_type = cache_under_test();
    request.context = context;
    request.texts = texts;
    request.max_width = 32;
    request.self_test = false;
    engine_ = Engine::open(device_under_test(), request, {});
    fresh_ = Engine::open(device_under_test(), request, {});
  }

  static ReplySettings in(DecodeMode mode, uint32_t tokens, float temperature = 0) {
    ReplySettings settings;
    settings.mode = mode;
    settings.budget = 12;
    settings.max_tokens = tokens;
    settings.sources = kAllSources;
    settings.sampling.temperature = temperature;
    settings.sampling.seed = 7;
    return settings;
  }

  DraftMemory& memory_of(uint64_t owner) {
    std::unique_ptr<DraftMemory>& memory = memories_[owner];
    if (memory == nullptr) memory = engine_->new_memory(owner);
    return *memory;
  }

  void step(Asked& asked) {
    if (!asked.writer)
      asked.writer = engine_->begin_reply(asked.prompt, asked.settings, asked.callbacks, memory_of(asked.owner));
    if (asked.writer->step()) return;
    asked.reply = asked.writer->take();
    asked.writer.reset();
    asked.over = true;
    engine_->end_reply(memory_of(asked.owner), asked.reply);
  }

  /// As an engine that writes nothing else.
  void expect_as_alone(const Asked& asked) {
    fresh_->resident->clear();
    const Reply expected = fresh_->reply(asked.prompt, asked.settings);
    EXPECT_EQ(asked.reply.ids, expected.ids);
    EXPECT_EQ(asked.reply.text, expected.text);
    EXPECT_EQ(asked.reply.reason, expected.reason);
  }

  std::unique_ptr<Engine> engine_, fresh_;
  std::map<uint64_t, std::unique_ptr<DraftMemory>> memories_;
};

constexpr DecodeMode kAllModes[] = {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive};

TEST_F(RepliesInTurn, EveryModeWritesTheSameBetweenTheOthers) {
  open(512, 4);
  const TurnIds common = turn_tokens(37, 1);
  std::list<Asked> all;
  for (uint32_t i = 0; i < 6; ++i) {
    TurnIds prompt = i < 5 ? common : turn_tokens(20, 50);
    const TurnIds rest = turn_tokens(3 + 9 * i, 10 + i);
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    all.push_back({.prompt = std::move(prompt),
                   .settings = in(kAllModes[i % 4], 14, i % 2 == 0 ? 0.0f : 0.9f),
                   .owner = i < 3 ? 1u : 2u});
  }
  while (!std::ranges::all_of(all, &Asked::over)) {
    for (Asked& each : all) {
      if (!each.over) step(each);
    }
  }
  for (const Asked& each : all) expect_as_alone(each);
  // All are resident: each is read again but for its last token, and by its owner alone.
  for (Asked& each : all) {
    Asked again{.prompt = each.prompt, .settings = each.settings, .owner = each.owner};
    while (!again.over) step(again);
    EXPECT_EQ(again.reply.reused_tokens, again.prompt.size() - 1);
    expect_as_alone(again);
  }
  EXPECT_EQ(engine_->reply(all.front().prompt, all.front().settings).reused_tokens, 0u);
}

// Three texts of two pages each in a cache of four: every one loses its end to the others again and again.
TEST_F(RepliesInTurn, WhatOthersTookIsReadAgain) {
  open(200, 1);
  std::mt19937 random(3);
  for (const DecodeMode mode : kAllModes) {
    SCOPED_TRACE(to_string(mode));
    engine_->resident->clear();
    std::list<Asked> all;
    for (uint32_t i = 0; i < 3; ++i)
      all.push_back({.prompt = turn_tokens(88 + i, 20 + i), .settings = in(mode, 18), .owner = i < 2 ? 1u : 2u});
    uint32_t steps = 0;
    while (!std::ranges::all_of(all, &Asked::over)) {
      auto each = all.begin();
      std::advance(each, random() % all.size());
      // Enough at a time that each comes further, whatever it has to read again.
      for (uint32_t left = 6 + random() % 6; left > 0 && !each->over; --left) {
        step(*each);
        ASSERT_LT(++steps, 2000u) << "no end";
      }
    }
    EXPECT_LE(engine_->resident->use().used, 4u);
    for (const Asked& each : all) expect_as_alone(each);
  }
}

TEST_F(RepliesInTurn, AReplyOfTheEngineComesBetween) {
  open(256, 1);
  for (const DecodeMode mode : kAllModes) {
    SCOPED_TRACE(to_string(mode));
    Asked asked{.prompt = turn_tokens(70, 30), .settings = in(mode, 16)};
    for (int i = 0; i < 6 && !asked.over; ++i) step(asked);
    const TurnIds whole = turn_tokens(240, 31);  // all pages
    const Reply own = engine_->reply(whole, in(mode, 8));
    fresh_->resident->clear();
    EXPECT_EQ(own.ids, fresh_->reply(whole, in(mode, 8)).ids);
    for (int i = 0; i < 7 && !asked.over; ++i) step(asked);
    engine_->resident->clear();
    while (!asked.over) step(asked);
    expect_as_alone(asked);
  }
}

TEST_F(RepliesInTurn, WhatIsDroppedHalfwayLeavesAllUsable) {
  open(256, 2);
  Asked stays{.prompt = turn_tokens(60, 40), .settings = in(DecodeMode::tree, 20)};
  for (uint32_t i = 0; i < 5; ++i) {
    Asked dropped{.prompt = turn_tokens(60, 40 + i), .settings = in(kAllModes[i % 4], 20)};
    for (uint32_t k = 0; k < 1 + 2 * i; ++k) step(dropped);
    if (!stays.over) step(stays);
  }
  while (!stays.over) step(stays);
  expect_as_alone(stays);
}

TEST_F(RepliesInTurn, OwnersKnowNothingOfEachOther) {
  open(256, 2, false);
  const TurnIds prompt = engine_->text.encode_raw("class Point:");
  const auto write = [&](uint64_t owner) {
    Asked asked{.prompt = prompt, .settings = in(DecodeMode::tree, 16), .owner = owner};
    asked.settings.sources = static_cast<DraftSources>(kFromEarlier | kFromRecycling);
    while (!asked.over) step(asked);
    return std::move(asked.reply);
  };
  const auto from_earlier = [](const Reply& reply) {
    size_t nodes = 0;
    for (const RoundRecord& round : reply.rounds) {
      for (const RoundNode& each : round.nodes) nodes += (each.node.sources & kFromEarlier) != 0 ? 1 : 0;
    }
    return nodes;
  };
  const Reply first = write(1), again = write(1), other = write(2);
  EXPECT_EQ(again.ids, first.ids);
  EXPECT_EQ(other.ids, first.ids);
  EXPECT_GT(from_earlier(again), 0u);
  EXPECT_EQ(from_earlier(first), 0u);
  EXPECT_EQ(from_earlier(other), 0u);
  EXPECT_EQ(again.reused_tokens, prompt.size() - 1);
  EXPECT_EQ(other.reused_tokens, 0u);
  ASSERT_EQ(other.rounds.size(), first.rounds.size());
  for (size_t i = 0; i < first.rounds.size(); ++i) EXPECT_EQ(other.rounds[i].width, first.rounds[i].width) << i;
}

}  // namespace
}  // namespace canopy::test
