// The rounds of the window, from events of the engine and from traces.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "app/state/recording.h"
#include "app/state/round_log.h"
#include "app/state/view_model.h"
#include "engine/base/mapped_file.h"
#include "engine/trace/trace_export.h"
#include "tests/app/support/scripted_engine.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"
#include "tests/trace/trace_compare.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;
using namespace app;  // NOLINT: the whole file is about it

/// Gives token ids their numbers as texts.
class NumberTexts final : public TokenTexts {
 public:
  explicit NumberTexts(std::string_view text) : text_(text) {}
  std::optional<trace::Piece> find(uint32_t token) const override {
    return token < TraceBuilder::vocab ? std::optional(trace::Piece{text_, false}) : std::nullopt;
  }

 private:
  std::string_view text_;
};

ReplyFinished finished(uint64_t id) {
  ReplyFinished event;
  event.reply_id = id;
  event.reason = FinishReason::max_tokens;
  event.mode = DecodeMode::adaptive;
  event.ar_tokens_per_second = 12.5;
  return event;
}

RoundFinished round_event(uint64_t id, RoundRecord record) {
  return {id, std::make_shared<const RoundRecord>(std::move(record)), 0, 0, {}, false};
}

Generate request(uint64_t id, std::optional<DecodeMode> mode = DecodeMode::adaptive, uint32_t budget = 24) {
  Generate generate;
  generate.reply_id = id;
  generate.mode = mode;
  generate.budget = budget;
  return generate;
}

/// "live" is said of rounds that are being written, not of the last one of a reply that has ended.
TEST(LiveRounds, AreLiveUntilTheReplyEnds) {
  RoundsState rounds;
  EXPECT_FALSE(is_live(rounds));
  rounds.live->expect(request(3));
  TraceBuilder builder;
  builder.begin();
  update(rounds, Event(round_event(3, builder.tree(8))));
  EXPECT_TRUE(is_live(rounds));
  update(rounds, Event(finished(3)));
  EXPECT_EQ(rounds.playback.state, PlayState::following);
  EXPECT_FALSE(is_live(rounds));
  rounds.live->expect(request(4));
  update(rounds, Event(round_event(4, builder.tree(8))));
  EXPECT_TRUE(is_live(rounds));
  update(rounds, RoundsCommand(TogglePause{}));
  EXPECT_FALSE(is_live(rounds));
}

TEST(LiveRounds, KeepsRepliesAndTheirRoundsInOrder) {
  TraceBuilder builder;
  LiveLog log;
  std::vector<RoundRecord> records;
  for (const uint64_t id : {7u, 9u}) {
    log.expect(request(id, DecodeMode::tree, 30));
    log.take(PrefillProgress{id, 3, 3});
    ReplyStarted started;
    started.reply_id = id;
    started.first_token = 40 + static_cast<uint32_t>(id);
    log.take(started);
    builder.begin(DecodeMode::tree);
    for (int i = 0; i < 4; ++i) {
      records.push_back(i == 2 ? builder.plain() : builder.tree(12));
      log.take(round_event(id, records.back()));
    }
    log.take(finished(id));
  }
  ASSERT_EQ(log.rounds(), 8u);
  ASSERT_EQ(log.replies().size(), 2u);
  EXPECT_EQ(log.replies()[1].id, 9u);
  EXPECT_EQ(log.replies()[1].first_round, 4u);
  EXPECT_EQ(log.replies()[1].rounds, 4u);
  EXPECT_EQ(log.replies()[1].budget, 30u);
  EXPECT_EQ(log.replies()[1].first_token, 49u);
  EXPECT_EQ(log.replies()[1].reason, FinishReason::max_tokens);
  EXPECT_EQ(log.replies()[1].ar_tokens_per_second, 12.5);
  for (size_t i = 0; i < records.size(); ++i) {
    expect_same(*log.round(i), records[i]);
    EXPECT_EQ(log.summary(i).reply, i / 4);
    EXPECT_EQ(log.summary(i).width, records[i].width);
    EXPECT_EQ(log.summary(i).emitted, records[i].emitted.size());
    EXPECT_EQ(log.summary(i).accepted, drafted_part(records[i]).tokens);
    EXPECT_EQ(log.summary(i).ms, records[i].ms);
  }
  EXPECT_EQ(log.round(8), nullptr);
}

TEST(LiveRounds, KeepsTheIdsOfThePromptsOfItsNewestReplies) {
  LiveLog log;
  for (uint64_t id = 1; id <= kPromptsKept + 2; ++id) {
    log.expect(request(id));
    ReplyStarted started;
    started.reply_id = id;
    started.before = std::make_shared<const std::vector<uint32_t>>(3, static_cast<uint32_t>(id));
    log.take(started);
  }
  ASSERT_EQ(log.replies().size(), kPromptsKept + 2);
  for (const ReplySummary& reply : log.replies()) {
    ASSERT_EQ(reply.before != nullptr, reply.id > 2) << reply.id;
    if (reply.before) {
      EXPECT_EQ(*reply.before, std::vector<uint32_t>(3, static_cast<uint32_t>(reply.id)));
    }
  }
}

TEST(LiveRounds, IgnoresRepliesThatNobodyAskedForOrThatWereFollowed) {
  TraceBuilder builder;
  builder.begin();
  LiveLog log;
  log.take(round_event(3, builder.tree(4)));
  EXPECT_EQ(log.rounds(), 0u);
  log.expect(request(3));
  log.expect(request(4));
  log.take(round_event(4, builder.tree(4)));
  log.take(round_event(3, builder.tree(4)));  // the other reply began first, so this one has no place any more
  EXPECT_EQ(log.rounds(), 1u);
  ASSERT_EQ(log.replies().size(), 1u);
  EXPECT_EQ(log.replies()[0].id, 4u);
}

TEST(LiveRounds, OldTreesMoveToAFileWithoutAName) {
  const TempFolder folder;
  TraceBuilder builder;
  builder.begin();
  std::vector<RoundRecord> records;
  for (int i = 0; i < 60; ++i) records.push_back(builder.any(40));
  const size_t room = 10 * memory_of(records[0]) + 20'000;
  LiveLog log(room, RoundSpill(folder.path()));
  log.expect(request(1));
  for (const RoundRecord& record : records) {
    log.take(round_event(1, record));
    ASSERT_LE(log.memory_used(), std::max(room, memory_of(record)));
  }
  EXPECT_TRUE(fs::is_empty(folder.path())) << "nothing is left behind, however the program ends";
  for (const size_t i : {0u, 1u, 0u, 30u, 59u, 17u, 0u}) expect_same(*log.round(i), records[i]);
  for (size_t i = 0; i < records.size(); ++i) expect_same(*log.round(i), records[i]);
}

TEST(LiveRounds, SharedWithAThreadStayAsTheyWere) {
  const TempFolder folder;
  TraceBuilder builder;
  builder.begin();
  std::vector<RoundRecord> records;
  for (int i = 0; i < 30; ++i) records.push_back(builder.any(40));
  auto log = std::make_unique<LiveLog>(10 * memory_of(records[0]), RoundSpill(folder.path()));
  log->expect(request(1));
  log->expect(request(2));
  for (int i = 0; i < 20; ++i) log->take(round_event(i < 12 ? 1 : 2, records[i]));
  const app::LiveRounds shared = log->share(3, 15);
  for (int i = 20; i < 30; ++i) log->take(round_event(2, records[i]));
  log.reset();
  ASSERT_EQ(shared.rounds(), 15u);
  for (size_t i = 0; i < 15; ++i) {
    expect_same(*shared.round(i), records[3 + i]);
    EXPECT_EQ(shared.reply_of(i).id, i < 9 ? 1u : 2u);
  }
  EXPECT_EQ(shared.round(15), nullptr);
}

TEST(LiveRounds, WithoutADiskOldTreesAreLetGoAndSummariesStay) {
  TraceBuilder builder;
  builder.begin();
  LiveLog log(1, RoundSpill("/proc/canopy-nowhere"));
  log.expect(request(1));
  uint64_t emitted = 0;
  for (int i = 0; i < 5; ++i) {
    RoundRecord record = builder.tree(20);
    emitted += record.emitted.size();
    log.take(round_event(1, std::move(record)));
  }
  EXPECT_EQ(log.round(0), nullptr);
  EXPECT_EQ(log.round(3), nullptr);
  EXPECT_NE(log.round(4), nullptr) << "the newest is shown, whatever the limit";
  EXPECT_EQ(log.summary(0).width, 20u);
  EXPECT_EQ(log.statistics().emitted(), emitted);
}

TEST(LiveRounds, AnAbridgedRoundHasASummaryButNoTree) {
  const TempFolder folder;
  TraceBuilder builder;
  builder.begin();
  LiveLog log(1, RoundSpill(folder.path()));
  log.expect(request(1));
  RoundFinished event = round_event(1, builder.tree(9));
  RoundRecord bare = *event.round;
  bare.nodes.clear();
  bare.accepted = 3;
  event.round = std::make_shared<const RoundRecord>(bare);
  event.abridged = true;
  const RoundRecord whole = builder.tree(9);
  log.take(round_event(1, whole));
  log.take(event);
  log.take(round_event(1, whole));
  log.take(round_event(1, whole));
  EXPECT_EQ(log.rounds(), 4u);
  EXPECT_EQ(log.round(1), nullptr);
  EXPECT_EQ(log.summary(1).accepted, 3u);
  EXPECT_EQ(log.statistics().rounds(), 3u);
  expect_same(*log.round(0), whole);  // from the file, in the right place
  expect_same(*log.round(2), whole);
}

TEST(LiveRounds, KnowsTheTextsOfTokens) {
  ViewModel view;
  ModelReady ready = small_model();
  ready.texts = std::make_shared<NumberTexts>("one");
  update(view, Event(ready));
  EXPECT_EQ(view.rounds.log->piece(3)->bytes, "one");
  EXPECT_FALSE(view.rounds.log->piece(TraceBuilder::vocab).has_value());
  EXPECT_NE(view.rounds.log->origin().find("Radeon"), std::string::npos);
}

TEST(LiveRounds, AnotherModelBeginsALogOfItsOwn) {
  ViewModel view;
  update(view, Event(small_model()));
  view.rounds.live->expect(request(1));
  TraceBuilder builder;
  builder.begin();
  update(view, Event(round_event(1, builder.tree(5))));
  update(view, UiCommand(RoundsCommand(SelectNode{NodeRef{0, 1}})));
  update(view, Event(small_model()));  // the same model again, perhaps on another device
  EXPECT_EQ(view.rounds.log->rounds(), 1u);
  ModelReady other = small_model();
  other.file_name = "Qwen3-0.6B.gguf";
  update(view, Event(other));
  EXPECT_EQ(view.rounds.log->rounds(), 0u);
  EXPECT_EQ(view.rounds.log, view.rounds.live);
  EXPECT_FALSE(view.rounds.selected.has_value());
  EXPECT_EQ(view.rounds.playback.state, PlayState::following);
}

TEST(LiveRounds, TheWindowAsksForThemWithEveryReply) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(small_model()));
  const Effects effects = update(view, UiCommand(SendMessage{"Hello"}));
  ASSERT_EQ(effects.engine.size(), 1u);
  const auto& generate = std::get<Generate>(effects.engine[0]);
  EXPECT_TRUE(generate.rounds);
  TraceBuilder builder;
  builder.begin();
  update(view, Event(round_event(generate.reply_id, builder.tree(5))));
  EXPECT_EQ(view.rounds.log->rounds(), 1u);
  EXPECT_EQ(view.rounds.log->replies()[0].id, generate.reply_id);
  EXPECT_NE(view.rounds.shown(), nullptr);
}

/// A trace of two replies.
class TraceInWindow : public testing::Test {
 protected:
  TraceInWindow() {
    TraceWriter trace(file(), builder_.header(), builder_.pieces());
    for (int reply = 0; reply < 2; ++reply) {
      trace.begin(builder_.begin(reply == 0 ? DecodeMode::tree : DecodeMode::adaptive));
      trace.prefilled(builder_.prefill());
      for (int i = 0; i < 30; ++i) {
        records_.push_back(builder_.any());
        trace.append(records_.back());
      }
      trace.end(builder_.end());
    }
    trace.finish();
    whole_ = read_small_file(file(), 1 << 22);
  }
  fs::path file() const { return folder_.path() / "run.canopytrace"; }
  fs::path put(std::string_view name, std::string_view bytes) const { return folder_.write(std::string(name), bytes); }

  TempFolder folder_;
  TraceBuilder builder_;
  std::vector<RoundRecord> records_;
  std::string whole_;
};

TEST_F(TraceInWindow, HasAllThatWasRecorded) {
  const TraceLog log(file());
  ASSERT_EQ(log.rounds(), 60u);
  ASSERT_EQ(log.replies().size(), 2u);
  EXPECT_EQ(log.replies()[0].mode, DecodeMode::tree);
  EXPECT_EQ(log.replies()[1].first_round, 30u);
  EXPECT_EQ(log.replies()[1].text, "the text of the reply");
  EXPECT_EQ(log.replies()[1].reason, FinishReason::max_tokens);
  EXPECT_FALSE(log.replies()[0].prompt_text.empty());
  EXPECT_EQ(log.origin(), "example-135m Q4_1 with example-dflash on Example GPU");
  for (const size_t i : {59u, 0u, 31u, 30u, 0u, 5u}) expect_same(*log.round(i), records_[i]);
  EXPECT_FALSE(log.is_live());
  EXPECT_TRUE(log.piece(records_[0].emitted[0]).has_value());
}

// gui.md, criterion 5
TEST_F(TraceInWindow, HasTheStatisticsOfTheLiveRun) {
  LiveLog live;
  for (uint64_t id : {1u, 2u}) {
    live.expect(request(id));
    for (size_t i = 0; i < 30; ++i) live.take(round_event(id, records_[(id - 1) * 30 + i]));
  }
  const TraceLog replay(file());
  EXPECT_EQ(to_json(live.statistics()).dump(), to_json(replay.statistics()).dump());
  EXPECT_EQ(live.statistics(), replay.statistics());
  EXPECT_EQ(replay.statistics().rounds(), 60u);
}

// gui.md, criterion 5
TEST_F(TraceInWindow, CutAnywhereItOpensAsFarAsItGoesOrSaysWhy) {
  size_t opened = 0, refused = 0;
  for (size_t i = 0; i < 64; ++i) {
    const size_t length = i * whole_.size() / 64;
    const fs::path cut = put("cut.canopytrace", std::string_view(whole_).substr(0, length));
    ViewModel view;
    open_trace(view, cut.string());
    ASSERT_EQ(view.cards.size(), 1u) << "cut at " << length << " without a word";
    if (view.rounds.trace_path.empty()) {
      ++refused;
      EXPECT_FALSE(view.cards[0].warning);
      EXPECT_NE(view.cards[0].detail.find("cut.canopytrace"), std::string::npos) << view.cards[0].detail;
      continue;
    }
    ++opened;
    EXPECT_TRUE(view.cards[0].warning);
    EXPECT_LT(view.rounds.log->rounds(), 60u);
    for (size_t r = 0; r < view.rounds.log->rounds(); ++r) EXPECT_NE(view.rounds.log->round(r), nullptr);
  }
  EXPECT_GT(opened, 30u);
  EXPECT_GT(refused, 0u);
}

// gui.md, criterion 5
TEST_F(TraceInWindow, AFlippedBitIsNoticed) {
  for (size_t i = 0; i < 64; ++i) {
    std::string damaged = whole_;
    damaged[i * whole_.size() / 64] ^= static_cast<char>(1 << (i % 8));
    ViewModel view;
    open_trace(view, put("flipped.canopytrace", damaged).string());
    ASSERT_EQ(view.cards.size(), 1u) << "byte " << i * whole_.size() / 64;
    EXPECT_FALSE(view.cards[0].detail.empty());
    EXPECT_EQ(view.cards[0].warning, !view.rounds.trace_path.empty());
  }
}

TEST_F(TraceInWindow, ABadTraceKeepsWhatIsShown) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(small_model()));
  const Effects effects = update(view, UiCommand(SendMessage{"Hello"}));
  const uint64_t id = std::get<Generate>(effects.engine[0]).reply_id;
  update(view, Event(round_event(id, records_[0])));
  update(view, Event(round_event(id, records_[1])));
  update(view, UiCommand(RoundsCommand(ShowRound{0})));
  const auto log = view.rounds.log;
  open_trace(view, put("not.canopytrace", "CanopyTr and nothing else").string());
  open_trace(view, (folder_.path() / "missing.canopytrace").string());
  EXPECT_EQ(view.cards.size(), 2u);
  EXPECT_EQ(view.rounds.log, log);
  EXPECT_EQ(view.rounds.playback.shown, 0u);
  EXPECT_EQ(view.messages.size(), 2u);
  // Nor does a bad trace close a good one.
  open_trace(view, file().string());
  open_trace(view, put("empty.canopytrace", "").string());
  EXPECT_EQ(view.rounds.trace_path, file().string());
  EXPECT_EQ(view.rounds.log->rounds(), 60u);
}

TEST_F(TraceInWindow, LiveRoundsArriveBehindATrace) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(small_model()));
  const Effects effects = update(view, UiCommand(SendMessage{"Hello"}));
  open_trace(view, file().string());
  EXPECT_EQ(view.rounds.playback.state, PlayState::paused);
  update(view, Event(round_event(std::get<Generate>(effects.engine[0]).reply_id, records_[0])));
  EXPECT_EQ(view.rounds.log->rounds(), 60u);
  EXPECT_EQ(view.rounds.playback.shown, 0u);
  update(view, UiCommand(RoundsCommand(CloseTrace{})));
  EXPECT_EQ(view.rounds.log->rounds(), 1u);
  EXPECT_TRUE(view.rounds.trace_path.empty());
  EXPECT_EQ(view.rounds.playback.state, PlayState::following);
}

TEST_F(TraceInWindow, SaysWhetherAProcessorComputedIt) {
  const auto computed_by = [&](const char* backend, const char* device) {
    TraceHeader header = builder_.header();
    header.backend = backend;
    header.device = device;
    TraceWriter trace(folder_.path() / "other.canopytrace", header, builder_.pieces());
    trace.begin(builder_.begin(DecodeMode::tree));
    trace.prefilled(builder_.prefill());
    trace.append(builder_.any());
    trace.end(builder_.end());
    trace.finish();
    return TraceLog(folder_.path() / "other.canopytrace").on_processor();
  };
  EXPECT_FALSE(computed_by("vulkan", "Radeon RX 7900 XTX"));
  EXPECT_TRUE(computed_by("cpu", "AMD EPYC"));
  EXPECT_TRUE(computed_by("", "llvmpipe (LLVM 15.0.6, 256 bits)"));  // of before there was a choice of backends
}

TEST_F(TraceInWindow, ARedactedOneHasNoTexts) {
  builder_.write(folder_.path() / "redacted.canopytrace", 20, true);
  const TraceLog log(folder_.path() / "redacted.canopytrace");
  EXPECT_EQ(log.rounds(), 20u);
  for (uint32_t token = 0; token < TraceBuilder::vocab; ++token) EXPECT_FALSE(log.piece(token).has_value());
  EXPECT_TRUE(log.replies()[0].text.empty());
  EXPECT_TRUE(log.replies()[0].prompt_text.empty());
}

TEST_F(TraceInWindow, ContentDecidesWhatAFileIs) {
  EXPECT_TRUE(looks_like_trace(put("renamed.gguf", whole_)));
  EXPECT_FALSE(looks_like_trace(put("model.gguf", "GGUF....")));
  EXPECT_FALSE(looks_like_trace(put("short", "Can")));
  EXPECT_FALSE(looks_like_trace(folder_.path()));
  EXPECT_FALSE(looks_like_trace(folder_.path() / "missing.canopytrace"));
  EXPECT_TRUE(looks_like_trace(put("damaged.canopytrace", "x"))) << "so that its error speaks of a trace";
}

TEST(Selection, ShowsTheRoundOfTheNode) {
  ViewModel view;
  view.rounds.live->expect(request(1));
  TraceBuilder builder;
  builder.begin();
  for (int i = 0; i < 5; ++i) update(view, Event(round_event(1, builder.tree(5))));
  update(view, UiCommand(RoundsCommand(HoverNode{NodeRef{1, 2}})));
  EXPECT_EQ(view.rounds.playback.shown, 4u) << "pointing at a token does not turn the page";
  update(view, UiCommand(RoundsCommand(SelectNode{NodeRef{1, 2}})));
  EXPECT_EQ(view.rounds.playback.shown, 1u);
  EXPECT_EQ(view.rounds.playback.state, PlayState::paused);
  update(view, UiCommand(RoundsCommand(SelectNode{std::nullopt})));
  EXPECT_EQ(view.rounds.playback.shown, 1u);
  EXPECT_FALSE(view.rounds.selected.has_value());
}

}  // namespace
}  // namespace canopy::test
