// A window that watches a Canopy elsewhere, both real: a served model, and an engine thread that opens it by its
// address. Its text, its rounds and its recording are those of the same model opened here.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/serve/model_server.h"
#include "engine/trace/trace_reader.h"
#include "tests/base/temp_folder.h"
#include "tests/session/engine_thread_rig.h"
#include "tests/trace/trace_compare.h"

namespace canopy::test {
namespace {

constexpr const char* kServedKey = "a-key-for-tests";

/// The tiny model, served by a thread of its own.
class ServedTiny {
 public:
  ServedTiny() : device_(make_reference_device()) {
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    request.context = 512;
    engine_ = Engine::open(*device_, request, {});
    ServeOptions options;
    options.address.port = 0;
    options.keys.push_back({kServedKey, {}});
    options.model = "tiny";
    server_ = std::make_unique<ModelServer>(*engine_, options);
    thread_ = std::jthread([this](const std::stop_token& stop) { server_->run(stop); });
  }

  std::string url() const { return server_->url(); }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ModelServer> server_;
  std::jthread thread_;  // first to end
};

/// What was measured is another every time.
RoundRecord without_times(RoundRecord record) {
  record.ms = record.device_ms = record.predicted = {};
  record.choice.candidates.clear();
  record.choice.ar_tokens_per_second = 0;
  record.choice.reason.clear();
  record.teaches = true;
  return record;
}

class RemoteEngineTest : public EngineThreadTest {
 protected:
  static LoadModel here() {
    LoadModel load = tiny();
    load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    return load;
  }

  LoadModel there() const {
    LoadModel load;
    load.path = served_.url();
    load.key = kServedKey;
    return load;
  }

  static Generate asked(uint64_t id, DecodeMode mode, uint32_t max_tokens = 24) {
    Generate generate;
    generate.reply_id = id;
    generate.turns = {{"user", "import os"}};
    generate.max_tokens = max_tokens;
    generate.mode = mode;
    generate.budget = 6;
    generate.rounds = true;
    return generate;
  }

  /// The events of a conversation of two replies, the second of which is drawn.
  std::vector<Event> conversation(DecodeMode mode) {
    engine_->post(asked(1, mode));
    std::vector<Event> events = until<ReplyFinished>();
    if (events.empty()) return events;
    const ReplyFinished first = std::get<ReplyFinished>(events.back());
    Generate second = asked(2, mode);
    second.turns.push_back({"assistant", text_of(events), first.tokens});
    second.turns.push_back({"user", "def f"});
    second.sampling.temperature = 0.8f;
    second.sampling.top_p = 0.9f;
    second.sampling.seed = 12;
    engine_->post(second);
    for (Event& event : until<ReplyFinished>()) events.push_back(std::move(event));
    return events;
  }

  const ServedTiny served_;
};

void expect_same_reply(const std::vector<Event>& here, const std::vector<Event>& there) {
  std::vector<const RoundFinished*> rounds[2];
  std::vector<const ReplyStarted*> starts[2];
  std::vector<const ReplyFinished*> ends[2];
  for (int side = 0; side < 2; ++side) {
    for (const Event& event : side == 0 ? here : there) {
      if (const auto* round = std::get_if<RoundFinished>(&event)) rounds[side].push_back(round);
      if (const auto* start = std::get_if<ReplyStarted>(&event)) starts[side].push_back(start);
      if (const auto* end = std::get_if<ReplyFinished>(&event)) ends[side].push_back(end);
    }
  }
  ASSERT_EQ(starts[0].size(), starts[1].size());
  for (size_t i = 0; i < starts[0].size(); ++i) {
    EXPECT_EQ(starts[0][i]->reply_id, starts[1][i]->reply_id);
    EXPECT_EQ(starts[0][i]->prompt_tokens, starts[1][i]->prompt_tokens);
    EXPECT_EQ(starts[0][i]->first_token, starts[1][i]->first_token);
    EXPECT_EQ(starts[0][i]->reused_tokens, starts[1][i]->reused_tokens);
  }
  ASSERT_EQ(rounds[0].size(), rounds[1].size());
  EXPECT_GT(rounds[0].size(), 0u);
  for (size_t i = 0; i < rounds[0].size(); ++i) {
    EXPECT_EQ(rounds[0][i]->reply_id, rounds[1][i]->reply_id);
    EXPECT_EQ(rounds[0][i]->first_index, rounds[1][i]->first_index);
    EXPECT_EQ(rounds[0][i]->text_begin, rounds[1][i]->text_begin);
    EXPECT_EQ(rounds[0][i]->text_ends, rounds[1][i]->text_ends);
    expect_same(without_times(*rounds[0][i]->round), without_times(*rounds[1][i]->round));
  }
  ASSERT_EQ(ends[0].size(), ends[1].size());
  for (size_t i = 0; i < ends[0].size(); ++i) {
    EXPECT_EQ(ends[0][i]->reason, ends[1][i]->reason);
    EXPECT_EQ(ends[0][i]->reply_tokens, ends[1][i]->reply_tokens);
    EXPECT_EQ(ends[0][i]->tokens, ends[1][i]->tokens);
    EXPECT_EQ(ends[0][i]->context_used, ends[1][i]->context_used);
    EXPECT_EQ(ends[0][i]->mode, ends[1][i]->mode);
    EXPECT_EQ(ends[0][i]->tau, ends[1][i]->tau);
  }
}

TEST_F(RemoteEngineTest, ItsRoundsAndItsTextAreThoseOfTheSameModelHere) {
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::tree}) {
    SCOPED_TRACE(std::string(to_string(mode)));
    start();
    engine_->post(here());
    const auto local = await<ModelReady>();
    const std::vector<Event> written_here = conversation(mode);
    engine_->post(there());
    const auto remote = await<ModelReady>();
    EXPECT_EQ(remote.name, local.name);
    EXPECT_EQ(remote.drafter, local.drafter);
    EXPECT_EQ(remote.block, local.block);
    EXPECT_EQ(remote.vocabulary, local.vocabulary);
    EXPECT_EQ(remote.context, local.context);
    EXPECT_EQ(remote.thinking, local.thinking);
    EXPECT_EQ(remote.device, local.device + " at " + remote.server);
    for (uint32_t token = 0; token < 1200; ++token) {
      const auto a = local.texts->find(token), b = remote.texts->find(token);
      ASSERT_EQ(a.has_value(), b.has_value()) << token;
      if (!a) continue;
      EXPECT_EQ(a->bytes, b->bytes);
      EXPECT_EQ(a->control, b->control);
    }
    const std::vector<Event> written_there = conversation(mode);
    ASSERT_FALSE(written_here.empty() || written_there.empty());
    EXPECT_EQ(text_of(written_there), text_of(written_here));
    if (mode == DecodeMode::ar) {
      expect_same_reply(written_here, written_there);
    } else {
      // The server has the prompt in its cache already; its passes alone are in the test of recordings.
      for (const Event& event : written_there) {
        const auto* round = std::get_if<RoundFinished>(&event);
        EXPECT_LE(round == nullptr ? 1 : round->round->width, 7u);
      }
    }
  }
}

TEST_F(RemoteEngineTest, ItsRecordingIsTheOneOfTheSameModelHere) {
  const TempFolder folder;
  const std::string here_file = (folder.path() / "here.canopytrace").string();
  const std::string there_file = (folder.path() / "there.canopytrace").string();
  start();
  const auto record = [&](const LoadModel& load, const std::string& file) {
    engine_->post(load);
    await<ModelReady>();
    engine_->post(RecordTrace{file});
    EXPECT_TRUE(await<Recording>().active);
    engine_->post(asked(1, DecodeMode::tree));
    const std::vector<Event> events = until<ReplyFinished>();
    engine_->post(StopRecording{});
    EXPECT_FALSE(await<Recording>().active);
    return events;
  };
  const std::vector<Event> written_here = record(here(), here_file), written_there = record(there(), there_file);
  expect_same_reply(written_here, written_there);
  const TraceReader local = TraceReader::open(here_file), remote = TraceReader::open(there_file);
  EXPECT_EQ(remote.notice(), "");
  EXPECT_EQ(remote.header().target.name, local.header().target.name);
  EXPECT_EQ(remote.header().device, local.header().device);
  ASSERT_EQ(remote.replies().size(), 1u);
  const TraceReply &a = local.replies()[0], &b = remote.replies()[0];
  EXPECT_EQ(b.begin.prompt, a.begin.prompt);
  EXPECT_EQ(b.begin.budget, a.begin.budget);
  EXPECT_EQ(b.begin.max_tokens, a.begin.max_tokens);
  ASSERT_TRUE(a.prefill && b.prefill && a.end && b.end);
  EXPECT_EQ(b.prefill->first_token, a.prefill->first_token);
  EXPECT_EQ(b.end->text, a.end->text);
  EXPECT_EQ(b.end->reason, a.end->reason);
  EXPECT_EQ(b.end->reply_tokens, a.end->reply_tokens);
  ASSERT_EQ(remote.rounds(), local.rounds());
  for (size_t i = 0; i < local.rounds(); ++i)
    expect_same(without_times(local.round(i)), without_times(remote.round(i)));
  for (const uint32_t token : a.begin.prompt) {
    ASSERT_TRUE(local.piece(token) != nullptr && remote.piece(token) != nullptr) << token;
    EXPECT_EQ(remote.piece(token)->bytes, local.piece(token)->bytes);
  }
}

TEST_F(RemoteEngineTest, AReplyThatGoesOnIsTheOneOfALargerLimit) {
  start();
  engine_->post(there());
  await<ModelReady>();
  engine_->post(asked(1, DecodeMode::chain, 24));
  const std::string whole = text_of(until<ReplyFinished>());
  engine_->post(asked(2, DecodeMode::chain, 12));
  const std::vector<Event> first = until<ReplyFinished>();
  Generate rest = asked(3, DecodeMode::chain, 12);
  rest.begun = std::get<ReplyFinished>(first.back()).tokens;
  ASSERT_FALSE(rest.begun.ids.empty());
  engine_->post(rest);
  const std::vector<Event> second = until<ReplyFinished>();
  std::string joined = text_of(first);
  for (const Event& event : second)
    if (const auto* started = std::get_if<ReplyStarted>(&event)) joined.resize(started->begun_bytes);
  EXPECT_EQ(joined + text_of(second), whole);
  EXPECT_EQ(std::get<ReplyFinished>(second.back()).reply_tokens, 24u);
}

TEST_F(RemoteEngineTest, AComparisonHasItAsAColumnWithRounds) {
  start();
  engine_->post(here());
  await<ModelReady>();
  Compare command;
  command.id = 3;
  command.columns = {{{DecodeMode::tree, 6}, "", "", "", ""}, {{DecodeMode::tree, 6}, "", "", "", served_.url()}};
  command.columns[1].key = kServedKey;
  command.prompts = {{"one", "code", {{"user", "import os"}}}};
  command.settings.repeats = 1;
  command.settings.max_tokens = 24;
  command.settings.sampling.temperature = 0;
  command.first_reply_id = 90;
  engine_->post(command);
  const std::vector<Event> events = until<ComparisonFinished>();
  ASSERT_FALSE(events.empty());
  const auto& done = std::get<ComparisonFinished>(events.back());
  ASSERT_EQ(done.problem, "");
  ASSERT_EQ(done.sweep->runs.size(), 2u);
  EXPECT_FALSE(done.sweep->subjects.at(1).is_server());
  EXPECT_NE(done.sweep->subjects.at(1).device.find(" at 127.0.0.1:"), std::string::npos);
  const MeasuredRun* runs[2] = {};
  for (const MeasuredRun& run : done.sweep->runs) runs[run.key.contestant] = &run;
  ASSERT_TRUE(runs[0] != nullptr && runs[1] != nullptr);
  EXPECT_EQ(runs[1]->tokens, runs[0]->tokens);
  EXPECT_GT(runs[1]->rounds, 0u);
  EXPECT_GT(runs[1]->rows, runs[1]->rounds) << "its trees are wider than their root";
  EXPECT_EQ(runs[1]->text_hash, runs[0]->text_hash);
  EXPECT_FALSE(runs[1]->differs_at);
  EXPECT_GT(runs[1]->decode_ms, 0);
  size_t shown = 0;
  for (const Event& event : events)
    if (const auto* round = std::get_if<RoundFinished>(&event)) shown += round->reply_id >= 90 ? 1 : 0;
  EXPECT_EQ(shown, runs[0]->rounds + runs[1]->rounds);
}

TEST_F(RemoteEngineTest, AWrongKeyIsRefused) {
  start();
  LoadModel load = there();
  load.key = "another-key";
  engine_->post(load);
  EXPECT_NE(await<Failure>().detail.find("wants a key, or another one"), std::string::npos);
  load.key = "a key\r\nX: y";
  engine_->post(load);
  EXPECT_NE(await<Failure>().detail.find("a sign that no key may have"), std::string::npos);
}

}  // namespace
}  // namespace canopy::test
