// Costs of passes that have aged: when that is said, when they are measured again by themselves, and what ends that.

#include "app/state/calibration.h"

#include <gtest/gtest.h>

#include "app/state/models.h"
#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

constexpr int64_t kQuietMinute = 60'000, kHour = 60 * kQuietMinute, kDay = 24 * kHour, kStart = 1'700'000'000'000;
constexpr double kPassMs = 10;

/// A table in which a pass of any width takes 10 ms.
std::shared_ptr<const CostSnapshot> costs(const MeasuredUnder& under) {
  CostTable table;
  for (uint32_t width = 1; width <= 64; width *= 2) table.set_verify(width, 512, kPassMs);
  table.set_under(under);
  const ModelShape shape{
      .layers = 30, .hidden = 576, .query_heads = 9, .kv_heads = 3, .head_dim = 64, .ffn = 1536, .vocab = 49152};
  return std::make_shared<const CostSnapshot>(cost_snapshot(table, Roofline(shape, {2e12, 3e10})));
}

class AgeingCosts : public testing::Test {
 protected:
  AgeingCosts() {
    view_.chat.now_ms = kStart;
    run(OpenModel{"/models/a.gguf"});
    ModelReady model = test::small_model();
    model.costs = costs({kStart - 2 * kDay, {}});
    tell(model);
  }

  std::vector<Command> run(const UiCommand& command) { return update(view_, command).engine; }
  void tell(const Event& event) { update(view_, event); }
  std::vector<Command> after(int64_t ms) {
    view_.chat.now_ms += ms;
    return take_due_commands(view_);
  }

  /// A reply whose passes, of so many rows, take so long.
  void reply(double ms, uint32_t prompt = 20, uint32_t width = 1) {
    run(SendMessage{"Hello"});
    for (uint32_t i = 0; i < CostDrift::enough_passes; ++i) {
      RoundRecord round;
      round.context = 512;
      round.width = width;
      round.ms.verify = ms;
      round.emitted = {7};
      tell(RoundFinished{view_.reply_id, std::make_shared<const RoundRecord>(round), i, 0, {}, false});
    }
    ReplyFinished end;
    end.reply_id = view_.reply_id;
    end.prompt_tokens = prompt;
    end.context_used = prompt + 24;
    end.prefill_ms = 1;
    tell(end);
  }

  ViewModel view_;
};

TEST_F(AgeingCosts, AreStaleWhereTheLastRepliesTookOtherTimes) {
  reply(kPassMs * 1.3);
  EXPECT_FALSE(view_.calibration.is_stale()) << "one reply may be a moment's";
  EXPECT_EQ(stale_words(view_.calibration), "");
  reply(kPassMs * 1.3);
  EXPECT_TRUE(view_.calibration.is_stale());
  EXPECT_EQ(stale_words(view_.calibration), "Passes took 30% longer than was measured.");
  tell(Calibrated{costs({kStart, {}})});
  EXPECT_FALSE(view_.calibration.is_stale());
  for (int i = 0; i < 3; ++i) reply(kPassMs * 1.1);
  EXPECT_FALSE(view_.calibration.is_stale()) << "within 15%";
  for (int i = 0; i < 5; ++i) reply(kPassMs * 0.5);
  EXPECT_NE(stale_words(view_.calibration).find("shorter"), std::string::npos);
}

// The bar has room for a few words; they never say another direction than the long ones.
TEST_F(AgeingCosts, AreSaidBrieflyToo) {
  EXPECT_EQ(brief_stale_words(view_.calibration), "");
  reply(kPassMs * 1.3), reply(kPassMs * 1.3);
  EXPECT_EQ(brief_stale_words(view_.calibration), "Passes take longer by now.");
  tell(Calibrated{costs({kStart, {}})});
  reply(kPassMs * 0.5), reply(kPassMs * 0.5);
  EXPECT_EQ(brief_stale_words(view_.calibration), "Passes are quicker by now.");
  tell(Calibrated{costs({kStart, {}})});
  reply(kPassMs * 1.5), reply(kPassMs * 0.5, 20, 32);
  EXPECT_EQ(stale_words(view_.calibration), "Passes were off by 50% from what was measured.");
  EXPECT_EQ(brief_stale_words(view_.calibration), "Passes are off what was measured.");
  tell(Calibrated{costs({kStart, 0.42})});
  EXPECT_EQ(brief_stale_words(view_.calibration), "Passes were measured under load.");
}

TEST_F(AgeingCosts, SayThatTheyWereMeasuredUnderLoad) {
  tell(Calibrated{costs({kStart, 0.42})});
  EXPECT_TRUE(view_.calibration.is_stale());
  EXPECT_EQ(stale_words(view_.calibration), "Measured while other programs used 42% of the processor.");
  EXPECT_EQ(load_words(view_.calibration), stale_words(view_.calibration));
  tell(Calibrated{costs({kStart, 0.03})});
  EXPECT_FALSE(view_.calibration.is_stale());
  EXPECT_EQ(load_words(view_.calibration), "");
  tell(Calibrated{costs({})});
  EXPECT_FALSE(view_.calibration.is_stale()) << "files of before do not say it";
}

TEST_F(AgeingCosts, AreMeasuredByThemselvesInAQuietWindow) {
  EXPECT_TRUE(after(kHour).empty()) << "they are good";
  reply(20), reply(20);
  EXPECT_EQ(remeasure_due_ms(view_), view_.chat.now_ms + kQuietMs);
  EXPECT_TRUE(after(kQuietMs - 1).empty());
  const std::vector<Command> begun = after(1);
  ASSERT_EQ(begun.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<Calibrate>(begun[0]));
  EXPECT_TRUE(std::get<Calibrate>(begun[0]).when_idle);
  EXPECT_TRUE(view_.calibration.busy());
  EXPECT_TRUE(after(kHour).empty()) << "once";
  tell(CalibrationProgress{3, 100, 60});
  tell(Calibrated{costs({view_.chat.now_ms, 0.5})});
  EXPECT_TRUE(view_.calibration.is_stale()) << "others were at work again";
  EXPECT_TRUE(after(kDay - kQuietMinute).empty()) << "at most once a day";
  EXPECT_EQ(after(kQuietMinute).size(), 1u);
}

TEST_F(AgeingCosts, WaitWhereTheyWouldBeInTheWay) {
  reply(20), reply(20);
  run(CalibrationCommand(MeasureWhenIdle{false}));
  EXPECT_TRUE(after(kHour).empty()) << "the user does not want it";
  run(CalibrationCommand(MeasureWhenIdle{true}));
  view_.recording.phase = RecordingPhase::on;
  EXPECT_TRUE(after(kHour).empty()) << "the next reply is to be recorded";
  view_.recording.phase = RecordingPhase::off;
  view_.context_used = 4'000'000;  // which would be read again for the next reply, for over five seconds
  EXPECT_TRUE(after(kHour).empty());
  view_.context_used = 100;
  run(SetTheme{ThemeKind::light});
  EXPECT_TRUE(after(kQuietMs - 1).empty()) << "somebody is there";
  EXPECT_EQ(after(1).size(), 1u);
}

TEST_F(AgeingCosts, GiveWayToWhateverTheUserDoes) {
  reply(20), reply(20);
  ASSERT_EQ(after(kQuietMs).size(), 1u);
  const std::vector<Command> asked = run(SendMessage{"And now?"});
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<CancelCalibration>(asked[0])) << "before the reply, which waits for nothing";
  EXPECT_TRUE(std::holds_alternative<Generate>(asked[1]));
  EXPECT_FALSE(interrupt_remeasuring(view_.calibration)) << "once is enough";
  Failure cancelled;
  cancelled.kind = ErrorKind::cancelled;
  tell(cancelled);
  EXPECT_FALSE(view_.calibration.busy());
  EXPECT_EQ(view_.calibration.note, "") << "nobody had asked for it";
  EXPECT_TRUE(view_.cards.empty());
  ReplyFinished end;
  end.reply_id = view_.reply_id;
  end.prompt_tokens = 20;
  end.prefill_ms = 1;
  tell(end);
  EXPECT_TRUE(after(kQuietMs).empty()) << "not again at once";
  EXPECT_EQ(after(kTriedAgainMs).size(), 1u);
}

TEST_F(AgeingCosts, OneThatTheUserAskedForGoesOn) {
  ASSERT_EQ(run(CalibrationCommand(StartCalibration{})).size(), 1u);
  EXPECT_TRUE(run(SetTheme{ThemeKind::light}).empty());
  EXPECT_TRUE(view_.calibration.busy());
  EXPECT_TRUE(std::holds_alternative<CancelCalibration>(run(CalibrationCommand(StopCalibration{})).at(0)));
}

TEST_F(AgeingCosts, AreNoLongerSpokenOfWhereTheUserDismissedThem) {
  reply(20), reply(20);
  EXPECT_FALSE(view_.calibration.dismissed);
  EXPECT_TRUE(run(CalibrationCommand(DismissStaleCosts{})).empty());
  EXPECT_TRUE(view_.calibration.dismissed);
  EXPECT_FALSE(view_.calibration.busy());
  tell(Calibrated{costs({kStart, 0.42})});
  EXPECT_FALSE(view_.calibration.dismissed) << "others are";
}

}  // namespace
}  // namespace canopy::app
