// Comparisons through the engine's thread: columns on one prompt and on several, resumed, paused, cancelled, with other
// drafters, models, devices and a server.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "engine/base/files.h"
#include "engine/bench/prompt_file.h"
#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_journal.h"
#include "engine/bench/sweep_summary.h"
#include "engine/session/comparison.h"
#include "tests/base/temp_folder.h"
#include "tests/net/fake_server.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

using namespace std::chrono_literals;

class ComparisonTest : public EngineThreadTest {
 protected:
  void load_pair() {
    start();
    LoadModel load = tiny();
    load.drafter = drafter();
    engine_->post(load);
    await<ModelReady>();
  }
  static std::string drafter() { return golden_folder() / "tiny-qwen3-dflash-b8"; }
  std::string file() const { return folder_.path() / "comparison.json"; }

  static ComparisonPrompt prompt(const std::string& id, const std::string& text) {
    return {id, "code", {{"user", text}}};
  }
  /// Plain decoding, a chain, a tree and adaptive on one prompt.
  static Compare four(uint32_t repeats = 2) {
    Compare compare;
    compare.id = 7;
    compare.columns = {
        {{DecodeMode::ar, 0}}, {{DecodeMode::chain, 0}}, {{DecodeMode::tree, 6}}, {{DecodeMode::adaptive, 0}}};
    compare.prompts = {prompt("p", "def main():\n")};
    compare.settings.repeats = repeats;
    compare.settings.max_tokens = 20;
    compare.settings.warm_up_tokens = 3;
    return compare;
  }
  ComparisonFinished finished(const std::vector<Event>& events) {
    if (events.empty()) return {};
    EXPECT_TRUE(std::get<ComparisonFinished>(events.back()).sweep);
    return std::get<ComparisonFinished>(events.back());
  }
  ComparisonFinished compare(const Compare& command) {
    engine_->post(command);
    return finished(until<ComparisonFinished>());
  }
  Failure failure(const Compare& command) {
    engine_->post(command);
    return await<Failure>();
  }

  TempFolder folder_;
};

TEST_F(ComparisonTest, FourColumnsWriteTheSameTextFromOneReadingOfThePrompt) {
  load_pair();
  const std::string before = answer(1);
  const ComparisonFinished done = compare(four(3));
  EXPECT_FALSE(done.cancelled);
  EXPECT_EQ(done.problem, "");
  const Sweep& sweep = *done.sweep;
  ASSERT_EQ(sweep.runs.size(), 12u);
  EXPECT_TRUE(sweep.complete());
  std::set<std::string> texts;
  for (const MeasuredRun& run : sweep.runs) {
    texts.insert(run.text_hash);
    EXPECT_FALSE(run.differs_at);
    EXPECT_EQ(run.reused_tokens + 1, run.prompt_tokens) << "all but the row that is wanted";
    EXPECT_GT(run.decode_ms, 0);
    EXPECT_GE(run.tokens, run.rounds + 1);
    EXPECT_NEAR(run.ms.total(), run.decode_ms, 0.02 * run.decode_ms);
  }
  EXPECT_EQ(texts.size(), 1u);
  const Verdict verdict = verdict_of(sweep);
  EXPECT_EQ(verdict.agreement, Agreement::same);
  EXPECT_NE(verdict.sentence.find("same text"), std::string::npos) << verdict.sentence;
  EXPECT_EQ(sweep.subjects.size(), 1u);
  EXPECT_EQ(sweep.subjects[0].device, "Reference");
  EXPECT_EQ(sweep.subjects[0].drafter, "tiny-qwen3-dflash-b8");
  EXPECT_EQ(sweep.commit, "1a2b3c");
  EXPECT_EQ(answer(2), before) << "the chat goes on";
}

TEST_F(ComparisonTest, TheOrderIsDrawnAnewEachTime) {
  load_pair();
  Compare command = four(4);
  command.settings.max_tokens = 3;
  const ComparisonFinished done = compare(command);
  std::set<std::vector<uint32_t>> orders;
  for (size_t i = 0; i + 3 < done.sweep->runs.size(); i += 4) {
    std::vector<uint32_t> order;
    for (size_t k = 0; k < 4; ++k) order.push_back(done.sweep->runs[i + k].key.contestant);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 1u);
  for (size_t i = 0; i < done.sweep->runs.size(); ++i) EXPECT_EQ(done.sweep->runs[i].place, i);
}

TEST_F(ComparisonTest, PublishesTheFirstRepeatAsRepliesAndProgressThatNeverFalls) {
  load_pair();
  Compare command = four();
  command.first_reply_id = 500;
  engine_->post(command);
  const std::vector<Event> events = until<ComparisonFinished>();
  std::map<uint64_t, RunKey> runs;
  std::map<uint64_t, uint32_t> tokens;
  std::map<uint64_t, std::string> texts;
  uint64_t done = 0, begun = 0, made = 0;
  for (const Event& event : events) {
    if (const auto* run = std::get_if<ComparisonRunBegun>(&event)) {
      EXPECT_EQ(run->reply_id != 0, run->key.repeat == 0);
      if (run->reply_id != 0) runs[run->reply_id] = run->key;
    }
    if (const auto* round = std::get_if<RoundFinished>(&event)) {
      ASSERT_TRUE(runs.contains(round->reply_id));
      tokens[round->reply_id] += static_cast<uint32_t>(round->round->emitted.size());
    }
    if (const auto* text = std::get_if<TextDelta>(&event)) texts[text->reply_id] += text->text;
    if (const auto* progress = std::get_if<ComparisonProgress>(&event)) {
      EXPECT_EQ(progress->id, 7u);
      EXPECT_GE(progress->done, done);
      EXPECT_EQ(progress->total, 8u);
      done = progress->done;
    }
    begun += std::holds_alternative<ComparisonBegun>(event) ? 1 : 0;
    made += std::holds_alternative<ComparisonRun>(event) ? 1 : 0;
  }
  EXPECT_EQ(begun, 1u);
  EXPECT_EQ(made, 8u);
  EXPECT_EQ(done, 7u) << "told before the last run";
  ASSERT_EQ(runs.size(), 4u);
  const Sweep& sweep = *finished(events).sweep;
  for (const auto& [id, key] : runs) {
    const auto run = std::ranges::find(sweep.runs, key, &MeasuredRun::key);
    EXPECT_EQ(tokens[id] + 1, run->tokens);
    EXPECT_EQ(texts[id], texts.begin()->second);
  }
  EXPECT_FALSE(texts.begin()->second.empty());
}

TEST_F(ComparisonTest, WritesItsFile) {
  load_pair();
  Compare command = four();
  command.file = file();
  const ComparisonFinished done = compare(command);
  EXPECT_EQ(done.file, file());
  const Sweep read = read_sweep(file());
  EXPECT_EQ(sweep_text(read), sweep_text(*done.sweep));
  EXPECT_FALSE(std::filesystem::exists(journal_path(file())));
  EXPECT_FALSE(std::filesystem::exists(prompts_path(file())));
  const std::string refusal = failure(command).detail;
  EXPECT_NE(refusal.find("already. Choose another file."), std::string::npos) << "it is not written over: " << refusal;
}

TEST_F(ComparisonTest, CancelledItKeepsWholeRunsAndGoesOnLater) {
  load_pair();
  Compare command = four(100);
  command.settings.max_tokens = 60;
  command.file = file();
  engine_->post(command);
  for (int i = 0; i < 3; ++i) await<ComparisonRun>();
  const auto start = std::chrono::steady_clock::now();
  engine_->post(CancelComparison{});
  const ComparisonFinished stopped = finished(until<ComparisonFinished>());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
  EXPECT_TRUE(stopped.cancelled);
  ASSERT_GE(stopped.sweep->runs.size(), 3u);
  EXPECT_EQ(read_sweep(file()).runs.size(), stopped.sweep->runs.size());
  EXPECT_FALSE(read_sweep(file()).complete());
  ASSERT_EQ(prompts_of(*stopped.sweep, file(), {}).size(), command.prompts.size());
  EXPECT_EQ(prompts_of(*stopped.sweep, file(), {})[0].text, command.prompts[0].turns[0].content);

  command.resume = true;
  engine_->post(command);
  const auto begun = await<ComparisonBegun>();
  EXPECT_EQ(begun.sweep->runs.size(), stopped.sweep->runs.size());
  await<ComparisonRun>();
  engine_->post(CancelComparison{});
  const ComparisonFinished again = finished(until<ComparisonFinished>());
  EXPECT_GT(again.sweep->runs.size(), stopped.sweep->runs.size());
  for (const MeasuredRun& run : again.sweep->runs) EXPECT_FALSE(run.differs_at);
  EXPECT_EQ(again.sweep->runs[0].decode_ms, stopped.sweep->runs[0].decode_ms);
}

TEST_F(ComparisonTest, AThreadThatEndsInTheMiddleLosesNothing) {
  load_pair();
  Compare command = four(100);
  command.file = file();
  engine_->post(command);
  size_t told = 0;
  for (; told < 3; ++told) await<ComparisonRun>();
  engine_.reset();  // as when the window is closed
  const auto left = unfinished_sweep(file());
  ASSERT_TRUE(left);
  EXPECT_GE(left->runs.size(), told);
}

TEST_F(ComparisonTest, AnotherPlanDoesNotGoOn) {
  load_pair();
  Compare command = four(50);
  command.file = file();
  engine_->post(command);
  await<ComparisonRun>();
  engine_->post(CancelComparison{});
  until<ComparisonFinished>();
  command.resume = true;
  command.settings.max_tokens = 21;
  const std::string refusal = failure(command).detail;
  EXPECT_NE(refusal.find("another measurement"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("would be 21"), std::string::npos) << refusal;
}

TEST_F(ComparisonTest, AnEarlierRunThatWroteAnotherTextIsMadeAgain) {
  load_pair();
  Compare command = four(1);
  command.file = file();
  const Sweep whole = *compare(command).sweep;
  ASSERT_EQ(whole.runs.size(), 4u);
  command.resume = true;
  for (const bool baseline_left : {true, false}) {
    SCOPED_TRACE(baseline_left);
    Sweep part = whole;
    for (MeasuredRun& run : part.runs) {
      if (run.key.contestant == 2) run.text_hash = "00000000000000bb";
    }
    // Whether it is known already that it differs when the measurement goes on, or only later.
    std::erase_if(part.runs, [&](const MeasuredRun& run) {
      return run.key.contestant == 3 || (run.key.contestant == part.baseline && baseline_left);
    });
    write_file_atomically(file(), sweep_text(part));
    engine_->post(command);
    EXPECT_EQ(await<ComparisonBegun>().sweep->runs.size(), 2u);
    const ComparisonFinished done = finished(until<ComparisonFinished>());
    EXPECT_TRUE(done.sweep->complete());
    for (const MeasuredRun& run : done.sweep->runs) EXPECT_EQ(run.text_hash, whole.runs[0].text_hash);
  }
}

TEST_F(ComparisonTest, ATreeThatTheLoadedModelHasNoRoomForOpensItAgain) {
  load_pair();
  Compare command = four(1);
  command.columns = {{{DecodeMode::ar, 0}}, {{DecodeMode::tree, 200}}};
  command.settings.max_tokens = 8;
  const ComparisonFinished done = compare(command);
  ASSERT_TRUE(done.sweep->complete());
  uint32_t widest = 0;
  for (const MeasuredRun& run : done.sweep->runs) widest = std::max(widest, run.widest);
  EXPECT_GT(widest, 128u) << "a tree of 200 nodes is no tree of 127";
}

TEST_F(ComparisonTest, PausesBeforeTheNextRun) {
  load_pair();
  Compare command = four(3);
  command.settings.max_tokens = 4;
  engine_->post(command);
  engine_->post(PauseComparison{true});
  ComparisonProgress progress;
  while (!progress.paused) progress = await<ComparisonProgress>();
  std::this_thread::sleep_for(50ms);
  for (const Event& event : engine_->poll()) EXPECT_FALSE(std::holds_alternative<ComparisonRun>(event));
  engine_->post(PauseComparison{false});
  EXPECT_TRUE(finished(until<ComparisonFinished>()).sweep->complete());
}

TEST_F(ComparisonTest, CancelledWhilePausedItEnds) {
  load_pair();
  engine_->post(four(3));
  engine_->post(PauseComparison{true});
  ComparisonProgress progress;
  while (!progress.paused) progress = await<ComparisonProgress>();
  engine_->post(CancelComparison{});
  EXPECT_TRUE(finished(until<ComparisonFinished>()).cancelled);
  EXPECT_TRUE(compare(four(1)).sweep->complete()) << "the next one does not begin paused";
}

TEST_F(ComparisonTest, AnotherDrafterMustNotChangeTheText) {
  load_pair();
  Compare command = four(1);
  command.columns = {{{DecodeMode::ar, 0}}, {{DecodeMode::tree, 6}}, {{DecodeMode::tree, 6}, "", drafter()}};
  engine_->post(command);
  EXPECT_EQ(await<ComparisonBegun>().must_agree, (std::vector<bool>{true, true, true}));
  const ComparisonFinished done = finished(until<ComparisonFinished>());
  EXPECT_EQ(done.sweep->subjects.size(), 2u);
  EXPECT_EQ(done.sweep->subjects[0].target, done.sweep->subjects[1].target);
  for (const MeasuredRun& run : done.sweep->runs) EXPECT_FALSE(run.differs_at);
}

TEST_F(ComparisonTest, AnotherModelAndAnotherDeviceAreOpenedForItAndClosedAgain) {
  load_pair();
  Compare command = four(1);
  command.columns = {{{DecodeMode::ar, 0}},
                     {{DecodeMode::ar, 0}, golden_folder() / "tiny-qwen3-q8_0.gguf"},
                     {{DecodeMode::ar, 0}, "", "", "1"}};
  engine_->post(command);
  EXPECT_EQ(await<ComparisonBegun>().must_agree, (std::vector<bool>{true, false, true}))
      << "both devices of this rig have one name";
  const ComparisonFinished done = finished(until<ComparisonFinished>());
  ASSERT_EQ(done.sweep->runs.size(), 3u);
  EXPECT_EQ(done.sweep->subjects.size(), 3u);
  EXPECT_EQ(done.sweep->subjects[1].model, "tiny-qwen3-q8_0.gguf");
  EXPECT_NE(done.sweep->subjects[1].target, done.sweep->subjects[0].target);
  EXPECT_EQ(done.sweep->subjects[2].target, done.sweep->subjects[0].target);
  EXPECT_EQ(devices_opened_, 2);
  answer(3);
  EXPECT_EQ(book_.open, 1) << "the other device was closed";
}

TEST_F(ComparisonTest, WhatCannotBeComparedIsSaid) {
  load_pair();
  Compare command = four(1);
  command.columns[1].device = "none";
  EXPECT_NE(failure(command).detail.find("There is no device"), std::string::npos);
  command = four(1);
  command.columns[1].model = "/absent/model.gguf";
  EXPECT_NE(failure(command).detail.find("model.gguf"), std::string::npos);
  command = four(1);
  command.columns[1].model = golden_folder() / "tiny-qwen3-q8_0.gguf";
  command.columns[1].way.sources = kFromDflash;
  EXPECT_NE(failure(command).detail.find("needs a drafter"), std::string::npos);
  command = four(1);
  command.settings.max_tokens = 100'000;
  EXPECT_NE(failure(command).detail.find("need a context of"), std::string::npos);
  command = four(1);
  command.baseline = 4;
  EXPECT_NE(failure(command).detail.find("baseline is column 4 of 4"), std::string::npos);
  command = four(0);
  EXPECT_NE(failure(command).detail.find("at least one"), std::string::npos);
  command = four(1);
  command.file = "/absent/folder/a.json";
  EXPECT_FALSE(failure(command).detail.empty());
  EXPECT_TRUE(compare(four(1)).sweep->complete()) << "and the engine goes on";
}

TEST_F(ComparisonTest, WithoutAModelItSaysSo) {
  start();
  EXPECT_NE(failure(four(1)).detail.find("No model is loaded"), std::string::npos);
}

TEST_F(ComparisonTest, ALostDeviceEndsItAndTheJournalHasItsRuns) {
  load_pair();
  Compare command = four(50);
  command.file = file();
  engine_->post(command);
  for (int i = 0; i < 2; ++i) await<ComparisonRun>();
  lose_ = true;
  EXPECT_EQ(await<Failure>().kind, ErrorKind::device_lost);
  EXPECT_GE(unfinished_sweep(file())->runs.size(), 2u);
}

/// It counts no more tokens than it was asked for.
FakeServer::Answer counting_server() {
  return [](const FakeServer::Connection& to) {
    if (to.request.starts_with("GET ")) return void(to.begin(404));  // it is no Canopy
    to.begin();
    for (const char* word : {"one", " two", " three", " four", " five"}) {
      std::this_thread::sleep_for(4ms);
      to.text(word);
    }
    const std::string field = "\"max_tokens\":";
    const size_t at = to.request.find(field);
    const int asked = at == std::string::npos ? 0 : std::atoi(to.request.c_str() + at + field.size());
    to.finish("length", std::min(asked, 8));
  };
}

TEST_F(ComparisonTest, AServerIsAColumnOfSpeedAndText) {
  load_pair();
  const FakeServer server(counting_server());
  Compare command = four(2);
  command.columns = {{{DecodeMode::ar, 0}}, {{DecodeMode::ar, 0}, "its-name", "", "", server.url()}};
  command.first_reply_id = 90;
  engine_->post(command);
  const std::vector<Event> events = until<ComparisonFinished>();
  const ComparisonFinished done = finished(events);
  ASSERT_EQ(done.problem, "");
  ASSERT_EQ(done.sweep->runs.size(), 4u);
  std::string streamed;
  uint64_t server_reply = 0;
  for (const Event& event : events) {
    if (const auto* run = std::get_if<ComparisonRunBegun>(&event);
        run != nullptr && run->key.contestant == 1 && run->reply_id != 0)
      server_reply = run->reply_id;
    if (const auto* text = std::get_if<TextDelta>(&event);
        text != nullptr && text->reply_id == server_reply && server_reply != 0)
      streamed += text->text;
  }
  EXPECT_EQ(streamed, "one two three four five");
  for (const MeasuredRun& run : done.sweep->runs) {
    if (run.key.contestant != 1) continue;
    EXPECT_EQ(run.tokens, 8u);
    EXPECT_EQ(run.rounds, 0u);
    EXPECT_GE(run.decode_ms, 15);
    EXPECT_GT(run.tokens_per_second(), 0);
    EXPECT_EQ(run.differs_at, 0u) << "the first token of the model's text is another one";
  }
  const SweepSubject& subject = done.sweep->subjects[1];
  EXPECT_TRUE(subject.is_server());
  EXPECT_EQ(subject.model, "its-name");
  EXPECT_NE(done.sweep->name_of(1).find("server, its-name at 127.0.0.1:"), std::string::npos) << done.sweep->name_of(1);
  EXPECT_EQ(verdict_of(*done.sweep).agreement, Agreement::may);
  EXPECT_EQ(server.connections(), 5) << "one whether it is a Canopy, two to warm up, two that are measured";
}

TEST_F(ComparisonTest, AServerThatGoesAwayEndsItAndKeepsWhatWasMeasured) {
  load_pair();
  int answers = 0;
  const FakeServer server([&](const FakeServer::Connection& to) {
    if (to.request.starts_with("POST ") && ++answers > 3) return;
    counting_server()(to);
  });
  Compare command = four(5);
  command.columns = {{{DecodeMode::ar, 0}}, {{DecodeMode::ar, 0}, "", "", "", server.url()}};
  command.file = file();
  const ComparisonFinished done = compare(command);
  EXPECT_NE(done.problem.find("127.0.0.1"), std::string::npos) << done.problem;
  EXPECT_GE(done.sweep->runs.size(), 1u);
  EXPECT_EQ(read_sweep(file()).runs.size(), done.sweep->runs.size());
}

TEST_F(ComparisonTest, ASlowServerIsCancelledAtOnce) {
  load_pair();
  std::atomic<bool> asked = false;
  const FakeServer server([&](const FakeServer::Connection& to) {
    if (to.request.starts_with("GET ")) return void(to.begin(404));
    to.begin();
    asked = true;
    for (int i = 0; i < 500 && to.text("."); ++i) std::this_thread::sleep_for(20ms);
  });
  Compare command = four(1);
  command.columns = {{{DecodeMode::ar, 0}, "", "", "", server.url()}};
  engine_->post(command);
  while (!asked) std::this_thread::sleep_for(1ms);
  const auto start = std::chrono::steady_clock::now();
  engine_->post(CancelComparison{});
  EXPECT_TRUE(finished(until<ComparisonFinished>()).cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
}

TEST(ComparisonTexts, TellsTheFirstTokenThatDiffersWhoeverWroteFirst) {
  const WrittenText plain{"one two three", {1, 2, 3}, {3, 7, 13}, 9}, other{"one two four", {1, 2, 4}, {3, 7, 12}, 9};
  const RunKey baseline{0, 0, 0}, tree{1, 0, 0}, chain{2, 0, 0};
  ComparisonTexts texts(0);
  EXPECT_TRUE(texts.add(tree, other).empty()) << "there is nothing to compare with yet";
  EXPECT_TRUE(texts.add(chain, plain).empty());
  using Known = std::vector<std::pair<RunKey, std::optional<uint32_t>>>;
  EXPECT_EQ(texts.add(baseline, plain), (Known{{baseline, std::nullopt}, {tree, 2u}, {chain, std::nullopt}}));
  EXPECT_EQ(texts.add({1, 0, 1}, other), (Known{{{1, 0, 1}, 2u}}));
  EXPECT_EQ(texts.add({0, 0, 1}, other), (Known{{{0, 0, 1}, 2u}})) << "the baseline must agree with itself";
  EXPECT_TRUE(texts.add({1, 1, 0}, other).empty()) << "another prompt has another text";
}

TEST(ComparisonTexts, ComparesTextsWhereTokensAreOfAnotherVocabulary) {
  const WrittenText plain{"one two three", {1, 2, 3}, {3, 7, 13}, 9}, other{"one two tree", {8, 7}, {8, 12}, 10};
  EXPECT_EQ(difference_of(other, plain), 1u) << "by its own tokens: byte 9 is in the second";
  const WrittenText server{"one two tree", {}, {4, 12}, 0}, same{"one two three", {}, {4, 8, 13}, 0};
  EXPECT_EQ(difference_of(server, plain), 2u) << "by the tokens of the other";
  EXPECT_EQ(difference_of(same, plain), std::nullopt);
  EXPECT_EQ(difference_of(server, same), 1u) << "of two servers by its pieces";
  const WrittenText shorter{"one two", {1, 2}, {3, 7}, 9};
  EXPECT_EQ(difference_of(shorter, plain), 2u);
  EXPECT_EQ(difference_of(plain, shorter), 2u);
}

}  // namespace
}  // namespace canopy::test
