// The one speed of plain decoding: what it is taken from, when, and for what.

#include "app/state/plain_decoding.h"

#include <gtest/gtest.h>

#include <memory>

#include "app/state/view_model.h"
#include "tests/app/charts/chart_samples.h"
#include "tests/app/support/sample_log.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

using test::small_model;

constexpr int64_t kMinute = 60'000;

RoundRecord round_of(double ms, uint32_t context = 100, double forecast = 0) {
  RoundRecord record;
  record.context = context;
  record.emitted = {7};
  record.ms.verify = ms;
  record.choice.ar_tokens_per_second = forecast;
  return record;
}

/// A window with a model and a reply under way, at a time in milliseconds.
struct Desk {
  Desk() {
    view.chat.now_ms = 100 * kMinute;
    update(view, UiCommand(OpenModel{"/models/a.gguf"}));
    ModelReady model = small_model();
    model.drafter = "d.gguf";
    update(view, Event(model));
    update(view, UiCommand(SetDrafting{DecodeMode::adaptive}));
    ask();
  }
  void ask() { update(view, UiCommand(SendMessage{"Hello"})); }
  void round(RoundRecord record, uint64_t reply = 0) {
    update(view, Event(RoundFinished{reply != 0 ? reply : view.reply_id,
                                     std::make_shared<const RoundRecord>(std::move(record)),
                                     0,
                                     0,
                                     {},
                                     false}));
  }
  void rounds(int count, double ms, uint32_t context = 100) {
    for (int i = 0; i < count; ++i) round(round_of(ms, context));
  }
  void calibrated() { update(view, Event(Calibrated{test::costs_of(test::tiled_cost)})); }
  ArReference newest() const { return newest_ar_reference(view); }
  ViewModel view;
};

TEST(ArReference, ComesFromPlainRoundsOnceThereAreEnough) {
  Desk desk;
  EXPECT_FALSE(desk.newest().known());
  desk.round(round_of(25, 100, 44));
  EXPECT_EQ(desk.newest().source, ArSource::forecast);
  EXPECT_EQ(desk.newest().tokens_per_second, 44);
  EXPECT_STREQ(badge_of(desk.newest()), "predicted");
  desk.rounds(7, 25);
  const ArReference plain = desk.newest();
  EXPECT_EQ(plain.source, ArSource::plain_rounds);
  EXPECT_NEAR(plain.tokens_per_second, 40, 1e-9);
  EXPECT_EQ(plain.rounds, 8u);
  EXPECT_EQ(plain.where, "SmolLM2-135M-Instruct Q4_1 on Radeon RX 7900 XTX");
  EXPECT_STREQ(badge_of(plain), "measured");
  EXPECT_EQ(ar_origin(plain, desk.view.chat.now_ms + 2 * kMinute),
            "measured over 8 plain passes, 2 min ago; SmolLM2-135M-Instruct Q4_1 on Radeon RX 7900 XTX");
}

TEST(ArReference, SaysItsAgeBriefly) {
  ArReference reference;
  EXPECT_EQ(ar_age(reference, 5), "");
  reference.tokens_per_second = 40;
  reference.source = ArSource::forecast;
  EXPECT_EQ(ar_age(reference, 5), "predicted");
  reference.source = ArSource::calibration;
  EXPECT_EQ(ar_age(reference, 5), "measured earlier");
  reference.at_ms = 1;
  EXPECT_EQ(ar_age(reference, 1 + 2 * kMinute), "measured 2 min ago");
  reference.recorded = true;
  EXPECT_EQ(ar_age(reference, 5), "measured in the recording");
}

TEST(ArReference, LeavesOutRoundsThatDrafted) {
  Desk desk;
  desk.rounds(8, 25);
  RoundRecord shadow = round_of(100);
  shadow.ms.draft = 40;
  for (int i = 0; i < 20; ++i) desk.round(shadow);
  EXPECT_NEAR(desk.newest().tokens_per_second, 40, 1e-9);
}

TEST(ArReference, IsOfAboutTheSameContext) {
  Desk desk;
  desk.rounds(8, 25, 300);
  desk.rounds(8, 50, 3000);
  EXPECT_NEAR(ar_reference(desk.view, 0).tokens_per_second, 40, 1e-9);
  EXPECT_NEAR(ar_reference(desk.view, 15).tokens_per_second, 20, 1e-9);
}

TEST(ArReference, TheNewerOfPlainRoundsAndCalibrationCounts) {
  Desk desk;
  desk.rounds(8, 25);
  desk.view.chat.now_ms += kMinute;
  desk.calibrated();
  ArReference reference = desk.newest();
  EXPECT_EQ(reference.source, ArSource::calibration);
  EXPECT_NEAR(reference.tokens_per_second, 1000 / desk.view.calibration.costs->table.ar_ms(100), 1e-9);
  EXPECT_EQ(reference.at_ms, desk.view.chat.now_ms);
  desk.view.chat.now_ms += kMinute;
  desk.rounds(1, 25);
  EXPECT_EQ(desk.newest().source, ArSource::plain_rounds);
}

TEST(ArReference, BeginsAnewOnAnotherDeviceButNotWithAnotherDrafter) {
  Desk desk;
  desk.rounds(8, 25);
  ModelReady model = *desk.view.model;
  model.drafter = "other.gguf";
  update(desk.view, Event(model));
  EXPECT_EQ(desk.newest().source, ArSource::plain_rounds);
  model.device = "another device";
  update(desk.view, Event(model));
  EXPECT_FALSE(desk.newest().known());  // the rounds in the log ran elsewhere
}

TEST(ArReference, TheSameTextWithoutDraftsComesFirstForItsReply) {
  Desk desk;
  desk.rounds(20, 25);
  const uint64_t reply = desk.view.reply_id;
  desk.view.checks.check.message = reply;
  desk.view.checks.check.reply_id = 999;
  for (int i = 0; i < 10; ++i) desk.round(round_of(10), 999);
  EXPECT_EQ(desk.newest().source, ArSource::same_text);
  EXPECT_NEAR(desk.newest().tokens_per_second, 100, 1e-9);
  EXPECT_EQ(desk.newest().rounds, 10u);
}

TEST(ArReference, ARecordingHasItsOwn) {
  Desk desk;
  desk.rounds(8, 25);
  auto trace = std::make_shared<test::SampleLog>(false);
  for (int i = 0; i < 8; ++i) trace->add(round_of(10));
  desk.view.rounds.log = trace;
  const ArReference recorded = ar_reference(desk.view, 3);
  EXPECT_NEAR(recorded.tokens_per_second, 100, 1e-9);
  EXPECT_TRUE(recorded.recorded);
  EXPECT_EQ(ar_origin(recorded, 1), "measured over 8 plain passes, in the recording; a test");
  EXPECT_FALSE(ar_reference(desk.view, 8).known());
}

/// What stands under the reply and in the top bar compares with the same value.
TEST(ArReference, TheVerdictOfAReplyComparesWithIt) {
  Desk desk;
  desk.rounds(8, 25);
  ReplyFinished end;
  end.reply_id = desk.view.reply_id;
  end.ar_tokens_per_second = 77;
  update(desk.view, Event(end));
  EXPECT_NEAR(desk.view.messages.back().result->ar_tokens_per_second, 40, 1e-9);
}

// One basis for the verdict and all that compares with it: what was measured with the reply, not on another load.
TEST(ArReference, WhatWasMeasuredWithTheReplyComesFirst) {
  Desk desk;
  desk.rounds(20, 25);
  ReplyFinished end;
  end.reply_id = desk.view.reply_id;
  end.plain = {12.5, 3, false};
  update(desk.view, Event(end));
  const ArReference plain = desk.newest();
  EXPECT_EQ(plain.source, ArSource::beside);
  EXPECT_TRUE(plain.measured());
  EXPECT_NEAR(plain.tokens_per_second, 80, 1e-9);
  EXPECT_EQ(ar_origin(plain, 5), "measured with this reply, 3 plain passes; " + plain.where);
  EXPECT_NEAR(desk.view.messages.back().result->ar_tokens_per_second, 80, 1e-9);
  desk.ask();
  desk.round(round_of(25));
  EXPECT_EQ(desk.newest().source, ArSource::plain_rounds) << "of the next reply it is not known yet";
}

TEST(ArReference, AgesAreSaidInTheLargestUnit) {
  EXPECT_EQ(age_words(0, 5), "");
  EXPECT_EQ(age_words(1, 1 + kMinute - 1), "just now");
  EXPECT_EQ(age_words(1, 1 + 59 * kMinute), "59 min ago");
  EXPECT_EQ(age_words(1, 1 + 60 * kMinute), "1 h ago");
  EXPECT_EQ(age_words(1, 1 + 72 * 60 * kMinute), "3 days ago");
  EXPECT_EQ(age_words(10 * kMinute, 1), "just now");  // a clock that was set back
}

}  // namespace
}  // namespace canopy::app
