// Several replies of a model by turns: which gets the next pass, and what keys know of each other.

#include "engine/serve/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/serve/reply_queue.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

/// Writes down what it is told.
class Log final : public ServedObserver {
 public:
  ReplyCallbacks begin(const ServedRequest& request) override {
    begun.push_back(request.id);
    ReplyCallbacks callbacks;
    callbacks.round = [this, id = request.id](const RoundRecord&) {
      rounds.push_back(id);
      if (on_round) on_round(id);
    };
    callbacks.token = [this, id = request.id](const ReplyProgress& progress) { texts[id] += progress.text; };
    return callbacks;
  }
  void end(uint64_t id, const Reply* reply, const std::optional<Error>& problem) override {
    ended.push_back(id);
    EXPECT_EQ(reply == nullptr, problem.has_value());
    if (reply == nullptr) return;
    EXPECT_EQ(texts[id], reply->text);
  }

  std::vector<uint64_t> begun, rounds, ended;
  std::map<uint64_t, std::string> texts;
  std::function<void(uint64_t)> on_round;
};

using Ids = std::vector<uint64_t>;

class SchedulerTest : public ::testing::Test {
 protected:
  void open(SchedulerLimits limits, uint32_t context = 512, uint32_t texts = 4) {
    scheduler_.reset();
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.cache_type = cache_under_test();
    request.context = context;
    request.max_width = 32;
    request.texts = texts;
    request.self_test = false;
    engine_ = Engine::open(device_under_test(), request, {});
    log_ = Log();
    scheduler_ = std::make_unique<Scheduler>(*engine_, limits, &log_, [this] { ++wakes_; });
  }
  static SchedulerLimits limits(uint32_t parallel, uint32_t most_waiting = 64) {
    SchedulerLimits limits;
    limits.parallel = parallel;
    limits.most_waiting = most_waiting;
    return limits;
  }

  /// Of a reply that takes so many tokens, whatever the model says.
  ServedRequest request(uint32_t tokens, const std::string& address = "10.0.0.1", size_t key = 0) const {
    ServedRequest request;
    request.client = {key, "", address};
    request.prompt = {45, 46, 47, 48};  // read in one pass
    request.settings.max_tokens = tokens;
    uint32_t token = 40;
    while (request.settings.forced.size() < tokens) {
      ++token;
      if (!std::ranges::binary_search(engine_->text.stop_ids, token)) request.settings.forced.push_back(token);
    }
    return request;
  }
  /// Of one in the model's own words.
  ServedRequest own_words(uint32_t tokens) const {
    ServedRequest request;
    request.client = {0, "", "10.0.0.1"};
    request.prompt = engine_->text.encode_raw("import os");
    request.settings.max_tokens = tokens;
    return request;
  }
  std::shared_ptr<QueuedReply> put(const ServedRequest& request) { return scheduler_->put(request); }
  void step_all() {
    for (int i = 0; i < 10'000 && scheduler_->step(); ++i) {
    }
  }
  static ReplyNews news_of(QueuedReply& reply) { return reply.take(std::chrono::milliseconds(0)); }

  std::unique_ptr<Engine> engine_;
  Log log_;
  int wakes_ = 0;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, replies_take_turns_pass_by_pass) {
  open(limits(3));
  EXPECT_FALSE(scheduler_->step()) << "nothing was asked for";
  std::vector<std::shared_ptr<QueuedReply>> replies;
  for (int i = 0; i < 3; ++i) replies.push_back(put(request(6)));
  EXPECT_GE(wakes_, 3);
  step_all();
  // The first token of each comes of its prompt.
  Ids expected;
  for (int round = 0; round < 5; ++round) expected.insert(expected.end(), {1, 2, 3});
  EXPECT_EQ(log_.rounds, expected);
  EXPECT_EQ(log_.ended, (Ids{1, 2, 3}));
  for (const auto& reply : replies) {
    const ReplyNews news = news_of(*reply);
    EXPECT_TRUE(news.over);
    EXPECT_EQ(news.reason, FinishReason::max_tokens);
    EXPECT_EQ(news.reply_tokens, 6u);
    EXPECT_EQ(news.text, log_.texts[reply->request().id]);
  }
  EXPECT_EQ(scheduler_->counts().done, 3u);
  EXPECT_EQ(scheduler_->counts().reply_tokens, 18u);
  EXPECT_EQ(scheduler_->running(), 0u);
}

TEST_F(SchedulerTest, no_more_are_written_at_once_than_may_be_and_no_more_wait) {
  open(limits(2, 2));
  const auto first = put(request(3)), second = put(request(9));
  EXPECT_EQ(scheduler_->waiting(), 2u);
  EXPECT_EQ(put(request(3)), nullptr);
  scheduler_->step();
  EXPECT_EQ(scheduler_->running(), 2u);
  EXPECT_EQ(scheduler_->waiting(), 0u);
  const auto third = put(request(3));
  ASSERT_NE(third, nullptr);
  step_all();
  EXPECT_EQ(log_.begun, (Ids{1, 2, 3}));
  EXPECT_EQ(log_.ended.front(), 1u);
  EXPECT_TRUE(news_of(*third).over);
}

TEST_F(SchedulerTest, clients_wait_in_turn_whatever_one_of_them_asks_for) {
  open(limits(1));
  std::vector<std::shared_ptr<QueuedReply>> replies;
  for (int i = 0; i < 3; ++i) replies.push_back(put(request(2, "10.0.0.1")));
  replies.push_back(put(request(2, "10.0.0.2")));
  replies.push_back(put(request(2, "10.0.0.1", 1)));  // the same address with another key
  step_all();
  EXPECT_EQ(log_.begun, (Ids{1, 4, 5, 2, 3}));
  EXPECT_EQ(log_.ended, log_.begun);
}

TEST_F(SchedulerTest, a_higher_priority_gets_all_the_turns) {
  open(limits(2));
  const auto slow = put(request(8));
  for (int i = 0; i < 3; ++i) scheduler_->step();
  const size_t before = log_.rounds.size();
  ASSERT_GT(before, 0u);
  ServedRequest own = request(5);
  own.priority = 1;
  const auto first = put(own);
  step_all();
  EXPECT_EQ(Ids(log_.rounds.begin() + static_cast<std::ptrdiff_t>(before),
                log_.rounds.begin() + static_cast<std::ptrdiff_t>(before) + 4),
            (Ids{2, 2, 2, 2}));
  EXPECT_EQ(log_.ended, (Ids{2, 1}));
  EXPECT_TRUE(news_of(*slow).over);
}

TEST_F(SchedulerTest, what_is_stopped_ends_within_a_pass) {
  open(limits(1));
  const auto written = put(request(100)), waits = put(request(5)), goes_on = put(request(3));
  for (int i = 0; i < 4; ++i) scheduler_->step();
  scheduler_->stop(1);
  scheduler_->stop(2);
  scheduler_->stop(77);  // there is none
  scheduler_->step();
  ReplyNews news = news_of(*written);
  EXPECT_TRUE(news.over);
  EXPECT_EQ(news.reason, FinishReason::cancelled);
  EXPECT_EQ(news.reply_tokens, 4u) << "the first token and three passes";
  step_all();
  news = news_of(*waits);
  EXPECT_TRUE(news.over);
  ASSERT_TRUE(news.problem);
  EXPECT_EQ(news.problem->kind(), ErrorKind::cancelled);
  EXPECT_EQ(log_.begun, (Ids{1, 3})) << "what never began is not told";
  EXPECT_EQ(news_of(*goes_on).reply_tokens, 3u);
  EXPECT_EQ(scheduler_->counts().cancelled, 2u);
  EXPECT_EQ(scheduler_->counts().done, 1u);
}

TEST_F(SchedulerTest, what_is_paused_keeps_its_place_and_its_text) {
  open(limits(2));
  const auto paused = put(request(6)), other = put(request(6));
  for (int i = 0; i < 4; ++i) scheduler_->step();
  scheduler_->pause(1, true);
  step_all();
  EXPECT_EQ(log_.ended, (Ids{2}));
  EXPECT_FALSE(scheduler_->step());
  EXPECT_EQ(scheduler_->running(), 1u);
  const int wakes = wakes_;
  scheduler_->pause(1, false);
  EXPECT_GT(wakes_, wakes);
  step_all();
  EXPECT_EQ(log_.ended, (Ids{2, 1}));
  EXPECT_EQ(log_.texts[1], log_.texts[2]);
  // Also a paused one can be stopped.
  const auto third = put(request(6));
  scheduler_->step();
  scheduler_->pause(3, true);
  scheduler_->stop(3);
  step_all();
  EXPECT_EQ(news_of(*third).reason, FinishReason::cancelled);
}

// Each takes three pages in the end: the later ones wait until there is room, and read again what they lost.
TEST_F(SchedulerTest, too_few_pages_make_the_later_ones_wait_and_change_no_text) {
  SchedulerLimits few = limits(3);
  few.room_to_begin = few.room_to_go_on = 8;
  open(few, 320, 1);  // five pages
  const ServedRequest wish = own_words(150);
  const auto alone = put(wish);
  step_all();
  const std::string text = news_of(*alone).text;
  const auto first = put(wish), second = put(wish), third = put(wish);
  step_all();
  for (const auto& reply : {first, second, third}) {
    const ReplyNews news = news_of(*reply);
    EXPECT_TRUE(news.over);
    EXPECT_FALSE(news.problem) << news.problem->what();
    EXPECT_EQ(news.text, text);
    EXPECT_EQ(news.reply_tokens, 150u);
  }
  EXPECT_EQ(log_.ended, (Ids{1, 2, 3, 4})) << "the oldest goes on";
  const auto last_of = [&](uint64_t id) {
    return std::ranges::find(log_.rounds.rbegin(), log_.rounds.rend(), id).base() - log_.rounds.begin();
  };
  const auto first_of = [&](uint64_t id) { return std::ranges::find(log_.rounds, id) - log_.rounds.begin(); };
  EXPECT_LT(first_of(4), last_of(2)) << "all had begun";
}

TEST_F(SchedulerTest, another_reply_of_the_engine_may_come_between_and_take_the_memory) {
  open(limits(2), 256, 1);
  const ServedRequest wish = own_words(20);
  const auto alone = put(wish);
  step_all();
  const std::string text = news_of(*alone).text;
  const auto served = put(wish);
  for (int i = 0; i < 5; ++i) scheduler_->step();
  std::vector<uint32_t> whole(250, 50);  // nearly all pages
  ReplySettings settings;
  settings.max_tokens = 2;
  engine_->reply(whole, settings);
  for (int i = 0; i < 5; ++i) scheduler_->step();
  engine_->resident->clear();
  step_all();
  EXPECT_EQ(news_of(*served).text, text);
}

std::vector<std::shared_ptr<const RoundRecord>> rounds_of(const ReplyNews& news) {
  std::vector<std::shared_ptr<const RoundRecord>> rounds;
  for (const Event& event : news.events)
    if (const auto* finished = std::get_if<RoundFinished>(&event)) rounds.push_back(finished->round);
  return rounds;
}

/// Nodes of all rounds that came from these sources.
size_t nodes_from(DraftSources sources, const ReplyNews& news) {
  size_t nodes = 0;
  for (const auto& round : rounds_of(news)) {
    for (const RoundNode& each : round->nodes) nodes += (each.node.sources & sources) != 0 ? 1 : 0;
  }
  return nodes;
}

TEST_F(SchedulerTest, who_asks_for_passes_gets_the_events_of_its_own_reply) {
  open(limits(3));
  ServedRequest wish = request(6);
  const auto silent = put(wish);
  wish.wants_rounds = true;
  const auto first = put(wish), second = put(wish);
  step_all();
  EXPECT_TRUE(news_of(*silent).events.empty());
  for (const auto& reply : {first, second}) {
    const ReplyNews news = news_of(*reply);
    size_t started = 0;
    std::string text;
    for (const Event& event : news.events) {
      started += std::holds_alternative<ReplyStarted>(event) ? 1 : 0;
      if (const auto* delta = std::get_if<TextDelta>(&event)) text += delta->text;
    }
    EXPECT_EQ(started, 1u);
    EXPECT_EQ(text, news.text);
    const auto rounds = rounds_of(news);
    ASSERT_EQ(rounds.size(), 5u) << "the first token comes of the prompt";
    for (size_t i = 0; i < rounds.size(); ++i) EXPECT_EQ(rounds[i]->round, i);
    ASSERT_FALSE(news.events.empty());
    const auto* finished = std::get_if<ReplyFinished>(&news.events.back());
    ASSERT_NE(finished, nullptr);
    EXPECT_EQ(finished->reply_tokens, 6u);
    EXPECT_EQ(finished->context_used, wish.prompt.size() + 5) << "the last token is in no pass";
    EXPECT_EQ(finished->reason, FinishReason::max_tokens);
  }
  EXPECT_EQ(log_.rounds.size(), 15u) << "who watches sees all";
}

TEST_F(SchedulerTest, a_key_finds_nothing_of_another) {
  open(limits(2));
  ServedRequest of_a = own_words(24);
  of_a.settings.mode = DecodeMode::tree;
  of_a.settings.sources = static_cast<DraftSources>(kFromRecycling | kFromEarlier);
  of_a.wants_rounds = true;
  ServedRequest of_b = of_a;
  of_b.client.key = 1;
  const auto write = [&](const ServedRequest& wish) {
    const auto reply = put(wish);
    step_all();
    return news_of(*reply);
  };
  const ReplyNews first = write(of_a), again = write(of_a);
  EXPECT_EQ(first.reused_tokens, 0u);
  EXPECT_EQ(nodes_from(kFromEarlier, first), 0u);
  EXPECT_EQ(again.reused_tokens, of_a.prompt.size() - 1) << "of its own";
  EXPECT_GT(nodes_from(kFromEarlier, again), 0u) << "of its own";
  ASSERT_FALSE(rounds_of(again).empty());
  const ReplyNews other = write(of_b);
  EXPECT_EQ(other.text, first.text);
  EXPECT_EQ(other.reused_tokens, 0u);
  EXPECT_EQ(nodes_from(kFromEarlier, other), 0u);
  // What the other key's first reply knows is what the first one's knew: as many rounds, of the same widths.
  const auto own = rounds_of(first), others = rounds_of(other);
  ASSERT_EQ(others.size(), own.size());
  for (size_t i = 0; i < others.size(); ++i) EXPECT_EQ(others[i]->width, own[i]->width) << i;
  // Nor does whoever has the engine itself, for whom nothing was learnt.
  EXPECT_EQ(engine_->recycling->memory_bytes(), RecyclingTable().memory_bytes());
  EXPECT_FALSE(engine_->speculation->is_started());
  EXPECT_EQ(engine_->reply(of_a.prompt, of_a.settings).reused_tokens, 0u);
}

TEST_F(SchedulerTest, what_is_known_of_keys_is_bounded) {
  open(limits(1));
  KeyMemories keys(*engine_, 2, uint64_t{1} << 30);
  const auto first = keys.of(7);
  EXPECT_EQ(keys.of(7), first);
  keys.of(8);
  keys.bound();
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys.of(7), first);
  keys.of(9);
  keys.bound();
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys.of(7), first) << "used after the one that is forgotten";
  const auto other = keys.of(8);
  EXPECT_NE(other->owner, first->owner);
  EXPECT_GT(other->memory_bytes(), 0u);
  KeyMemories few(*engine_, 100, 1);
  few.of(1);
  few.of(2);
  few.bound();
  EXPECT_EQ(few.size(), 1u) << "the one used last stays whatever it takes";
}

TEST_F(SchedulerTest, the_end_ends_all) {
  open(limits(1));
  const auto written = put(request(50)), waits = put(request(5));
  for (int i = 0; i < 3; ++i) scheduler_->step();
  scheduler_->end_all();
  for (const auto& reply : {written, waits}) {
    const ReplyNews news = news_of(*reply);
    EXPECT_TRUE(news.over);
    ASSERT_TRUE(news.problem);
    EXPECT_EQ(news.problem->kind(), ErrorKind::cancelled);
  }
  EXPECT_EQ(put(request(1)), nullptr);
  EXPECT_FALSE(scheduler_->step());
  EXPECT_EQ(log_.ended, (Ids{1}));
}

TEST_F(SchedulerTest, what_fails_ends_alone) {
  open(limits(2));
  ServedRequest bad = request(3);
  bad.prompt = {1, 999'999};
  const auto fails = put(bad), works = put(request(3));
  step_all();
  const ReplyNews news = news_of(*fails);
  ASSERT_TRUE(news.problem);
  EXPECT_EQ(news.problem->kind(), ErrorKind::bad_input);
  EXPECT_EQ(news_of(*works).reply_tokens, 3u);
  EXPECT_EQ(scheduler_->counts().failed, 1u);
}

}  // namespace
}  // namespace canopy::test
