// The numbers of Watch, and the same passes as if on another device.

#include "app/charts/watch_numbers_view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "app/state/round_log.h"
#include "app/state/shell.h"
#include "app/state/what_if.h"
#include "app/state/words.h"
#include "tests/app/charts/chart_samples.h"
#include "tests/app/support/sample_log.h"

namespace canopy::app {
namespace {

using test::SampleLog;
using test::TraceBuilder;

constexpr double kPlainMs = 20;

ArReference plain_at(double ms) {
  ArReference plain;
  plain.tokens_per_second = 1000 / ms;
  plain.source = ArSource::plain_rounds;
  plain.rounds = 64;
  plain.at_ms = 1;
  return plain;
}

/// A log of rounds with trees of this width whose rows all cost the same, as on a processor.
std::shared_ptr<SampleLog> trees_of(size_t rounds, uint32_t width, size_t plain = 0) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(5);
  builder.begin(DecodeMode::tree);
  for (size_t i = 0; i < rounds + plain; ++i) {
    RoundRecord record = i < rounds ? builder.tree(width) : builder.plain();
    record.ms = {};
    record.ms.draft = record.shape == DecodeMode::ar ? 0 : 40;
    record.ms.verify = record.width * 10.0;
    record.choice.limits.depth = 15;
    log->add(record);
  }
  return log;
}

/// Another device that verifies so many rows at the places of the recorded passes, each in `ms`; a plain token takes 1.
WhatIfThere device_with(const SampleLog& log, uint32_t rows, double ms) {
  WhatIfThere there;
  there.name = "RTX 4090";
  there.detail = "1,008 GB/s";
  there.from = "Passes are predicted.";
  there.times = TimesFrom::predicted;
  for (size_t i = 0; i < log.rounds(); ++i) {
    WhatIfRound round;
    round.record = *log.round(i);
    round.record.width = rows;
    round.record.ms = {};
    round.record.ms.verify = ms;
    round.ar_ms = static_cast<double>(round.record.emitted.size());
    there.run.rounds.push_back(round);
  }
  return there;
}

struct Asked {
  explicit Asked(std::shared_ptr<SampleLog> of) : log(std::move(of)) {
    const size_t last = log->rounds() - 1;
    shown = log->round(last);
    elsewhere = elsewhere_up_to(device_with(*log, 16, 1.25), 0, shown->context);
    question = {&trail.up_to(log, last, 1000), shown.get(), &plain, &elsewhere};
    question.now_ms = 1 + 3 * 60'000;
  }
  std::shared_ptr<SampleLog> log;
  std::shared_ptr<const RoundRecord> shown;
  StatisticsTrail trail;
  ArReference plain = plain_at(kPlainMs);
  Elsewhere elsewhere;
  WatchQuestion question;
};

TEST(WatchNumbers, TokensPerPassAreThoseOfTheReply) {
  const Asked asked(trees_of(20, 17));
  const WatchNumbers numbers = watch_numbers(asked.question);
  const RoundStatistics& all = asked.log->statistics();
  EXPECT_NEAR(numbers.tokens_per_pass, all.tau(), 1e-12);
  EXPECT_EQ(numbers.passes, 20u);
  EXPECT_TRUE(numbers.tokens.shown);
  EXPECT_EQ(numbers.tokens.title, "tokens per pass");
  EXPECT_EQ(numbers.tokens.badge, "measured");
  EXPECT_NE(numbers.tokens.why.find(std::to_string(all.emitted()) + " tokens / 20 passes"), std::string::npos)
      << numbers.tokens.why;
}

TEST(WatchNumbers, ThePassCostsItsTimeInPlainTokens) {
  Asked asked(trees_of(8, 41));
  asked.question.on_cpu = true;
  const WatchNumbers numbers = watch_numbers(asked.question);
  EXPECT_NEAR(numbers.pass_ms, 450, 1e-9);
  EXPECT_EQ(numbers.guesses, 40);
  EXPECT_NEAR(numbers.plain_tokens, 22.5, 1e-9);
  EXPECT_EQ(numbers.cost.value, "450");
  EXPECT_EQ(numbers.cost.unit, "ms");
  EXPECT_TRUE(numbers.cost.title.starts_with("a pass here: ")) << numbers.cost.title;
  EXPECT_EQ(numbers.cost.subtitle, "= 23 plain tokens: this CPU pays per guess");
  EXPECT_NE(numbers.cost.why.find("40.0 to guess + 410 to check"), std::string::npos) << numbers.cost.why;
  EXPECT_NE(numbers.cost.why.find("measured over 64 plain passes, 3 min ago"), std::string::npos) << numbers.cost.why;
}

// Both are means over the same passes, however different these were, so that they multiply to the reply's speed.
TEST(WatchNumbers, TokensOverTimeIsTheSpeedOfTheReply) {
  const auto log = trees_of(9, 41, 5);
  RoundRecord slow = *log->round(0);
  slow.ms.verify = 20000;
  log->add(slow);
  const Asked asked(log);
  const WatchNumbers numbers = watch_numbers(asked.question);
  double tokens = 0, ms = 0;
  for (size_t i = 0; i < log->rounds(); ++i) {
    tokens += static_cast<double>(log->round(i)->emitted.size());
    ms += log->round(i)->ms.total();
  }
  EXPECT_NEAR(numbers.tokens_per_second, 1000 * tokens / ms, 1e-9);
  EXPECT_NEAR(1000 * numbers.tokens_per_pass / numbers.pass_ms, numbers.tokens_per_second, 1e-9);
  EXPECT_EQ(numbers.passes, log->rounds());
  EXPECT_LT(numbers.pass_ms, 2000) << "not the one of the shown pass";
  EXPECT_TRUE(numbers.cost.title.ends_with(speed(1000 * tokens / ms) + " tok/s")) << numbers.cost.title;
}

TEST(WatchNumbers, ARecordingSaysWhoseFiguresTheyAre) {
  Asked asked(trees_of(8, 41));
  asked.question.live = false;
  asked.question.on_cpu = true;
  EXPECT_TRUE(watch_numbers(asked.question).cost.title.starts_with("a pass, as recorded: "));
  asked.question.recorded_on = "llvmpipe";
  const WatchNumbers numbers = watch_numbers(asked.question);
  EXPECT_TRUE(numbers.cost.title.starts_with("a pass on llvmpipe: ")) << numbers.cost.title;
  EXPECT_EQ(numbers.cost.subtitle, "= 23 plain tokens: that CPU pays per guess");
  asked.question.times = "predicted";
  EXPECT_TRUE(watch_numbers(asked.question).cost.title.starts_with("a pass on llvmpipe, predicted: "));
  asked.plain = {};
  EXPECT_EQ(watch_numbers(asked.question).cost.subtitle, "plain decoding was not recorded");
}

TEST(WatchNumbers, ThePassOfAMixtureSaysWhatItHadToRead) {
  Asked asked(trees_of(8, 41));
  RoundRecord pass = *asked.shown;
  asked.question.shown = &pass;
  EXPECT_EQ(watch_numbers(asked.question).cost.why.find("experts"), std::string::npos);
  pass.distinct_experts = 36.25f;
  EXPECT_NE(watch_numbers(asked.question).cost.why.find("its 41 tokens together needed 36.2 different ones of a layer"),
            std::string::npos)
      << watch_numbers(asked.question).cost.why;
}

TEST(WatchNumbers, WithoutAPlainSpeedNothingIsClaimed) {
  Asked asked(trees_of(8, 41));
  asked.plain = {};
  const WatchNumbers numbers = watch_numbers(asked.question);
  EXPECT_EQ(numbers.plain_tokens, 0);
  EXPECT_EQ(numbers.cost.subtitle, "plain decoding was not measured here yet");
  asked.plain = plain_at(kPlainMs);
  asked.plain.source = ArSource::forecast;
  EXPECT_EQ(watch_numbers(asked.question).cost.subtitle.substr(0, 6), "about ");
}

TEST(WatchNumbers, APlainPassSaysSo) {
  const Asked asked(trees_of(0, 2, 3));
  const WatchNumbers numbers = watch_numbers(asked.question);
  EXPECT_TRUE(numbers.cost.title.starts_with("a plain pass here: ")) << numbers.cost.title;
  EXPECT_EQ(numbers.cost.subtitle, "nothing was guessed so far");
  EXPECT_EQ(numbers.tokens.value, "1.0");
  EXPECT_FALSE(numbers.elsewhere.shown);
}

TEST(WatchNumbers, TheOtherDeviceIsPredictedAndOnlyShownWhereItWins) {
  Asked asked(trees_of(20, 41));
  WatchNumbers numbers = watch_numbers(asked.question);
  ASSERT_TRUE(numbers.elsewhere.shown) << numbers.ratio;
  EXPECT_EQ(numbers.elsewhere.badge, "predicted");
  EXPECT_EQ(numbers.device, "RTX 4090");
  EXPECT_GT(numbers.ratio, 1);
  EXPECT_LE(numbers.most, 40u);
  EXPECT_NE(numbers.elsewhere.why.find("1,008 GB/s"), std::string::npos) << numbers.elsewhere.why;
  asked.elsewhere.ratio = 0.8;
  EXPECT_FALSE(watch_numbers(asked.question).elsewhere.shown);
  // Next to nothing was guessed: no ratio.
  EXPECT_FALSE(watch_numbers(Asked(trees_of(2, 41, 60)).question).elsewhere.shown);
}

TEST(Elsewhere, CountsThePassesThereUpToTheShownPlace) {
  const auto log = trees_of(12, 20);
  WhatIfThere there = device_with(*log, 16, 1.25);
  there.run.rounds[3].record.width = 2;
  there.run.rounds[9].record.width = 65;
  for (const size_t round : {0u, 3u, 8u, 11u, 5u}) {
    const Elsewhere all = elsewhere_up_to(there, 0, log->round(round)->context);
    double tokens = 0;
    for (size_t i = 0; i <= round; ++i) tokens += static_cast<double>(log->round(i)->emitted.size());
    const auto passes = static_cast<double>(round + 1);
    EXPECT_EQ(all.rounds, round + 1);
    EXPECT_NEAR(all.tokens, tokens / passes, 1e-12);
    EXPECT_NEAR(all.plain_tokens, 1.25, 1e-12);
    EXPECT_NEAR(all.ratio, tokens / (1.25 * passes), 1e-12);
    EXPECT_EQ(all.guesses, round == 3 ? 1u : 15u);
    EXPECT_EQ(all.least, round >= 3 ? 1u : 15u);
    EXPECT_EQ(all.most, round >= 9 ? 64u : 15u);
  }
  EXPECT_EQ(elsewhere_up_to(there, 1, UINT32_MAX).rounds, 0u) << "another reply";
  there.problem = "Nothing is known of it.";
  EXPECT_EQ(elsewhere_up_to(there, 0, UINT32_MAX).rounds, 0u);
}

/// Answers what the chip of Watch asks for the shown rounds, as the window does.
void answer_chip(ViewModel& view) {
  const auto question = next_chip_question(view.what_if, view.rounds, as_if_device(view.shell));
  ASSERT_TRUE(question);
  take_answer(view.what_if.chip, answer_what_if(*question, [](const WhatIfAnswer&) {}, {}));
  ASSERT_EQ(view.what_if.chip.answer.there.size(), 1u);
  EXPECT_EQ(view.what_if.chip.answer.there[0]->problem, "");
}

// One computation: at the end of a recording Watch says of a device what What if says of it.
TEST(Elsewhere, IsWhatWhatIfSays) {
  for (const char* demo : {"code", "prose"}) {
    ViewModel view;
    const auto log =
        std::make_shared<TraceLog>(std::string(CANOPY_SOURCE_DIR "/assets/demos/") + demo + ".canopytrace");
    show_log(view.rounds, log, demo);
    answer_chip(view);
    view.what_if.devices = {"rtx4090"};
    const auto question = next_question(view.what_if, view.rounds);
    ASSERT_TRUE(question);
    const WhatIfAnswer answer = answer_what_if(*question, [](const WhatIfAnswer&) {}, {});
    ASSERT_EQ(answer.there.size(), 2u);
    view.rounds.playback.shown = log->rounds() - 1;
    WatchSource source;
    source.update(view);
    EXPECT_NEAR(source.numbers().ratio, answer.there[1]->summary.ratio, 1e-9);
    EXPECT_EQ(source.numbers().device, answer.there[1]->name);
  }
}

/// The recordings that come with Canopy have all three numbers, with where they are from.
TEST(WatchSource, TheDemosHaveAllNumbers) {
  for (const char* demo : {"code", "prose"}) {
    ViewModel view;
    const auto log =
        std::make_shared<TraceLog>(std::string(CANOPY_SOURCE_DIR "/assets/demos/") + demo + ".canopytrace");
    show_log(view.rounds, log, demo);
    answer_chip(view);
    WatchSource source;
    for (size_t round = 0; round < log->rounds(); ++round) {
      view.rounds.playback.shown = round;
      source.update(view);
      ASSERT_TRUE(source.done());
      ASSERT_NE(source.line(), nullptr);
    }
    const WatchNumbers& numbers = source.numbers();
    EXPECT_GT(numbers.tokens_per_pass, 1) << demo;
    EXPECT_EQ(numbers.tokens.badge, "replayed");
    EXPECT_GT(numbers.plain_tokens, 1) << demo;
    EXPECT_NE(numbers.cost.why.find("in the recording"), std::string::npos) << numbers.cost.why;
    EXPECT_TRUE(numbers.elsewhere.shown) << demo << ' ' << numbers.ratio;
    EXPECT_TRUE(source.line()->sentence.starts_with("Set when this was recorded")) << source.line()->sentence;
    // Nothing is predicted for a pass without a guess.
    EXPECT_EQ(source.line()->elsewhere.empty(), log->summary(log->rounds() - 1).width == 1);
    EXPECT_NE(numbers.cost.subtitle.find("that CPU"), std::string::npos) << numbers.cost.subtitle;
  }
}

struct ShownFigures {
  std::string tokens, cost, cost_title, question;
  bool operator==(const ShownFigures&) const = default;
};
ShownFigures figures_of(const ViewModel& view) {
  WatchSource source;
  source.update(view);
  const WatchNumbers& numbers = source.numbers();
  return {numbers.tokens.shown ? numbers.tokens.why : "", numbers.cost.shown ? numbers.cost.why : "",
          numbers.cost.title, source.line() ? source.line()->question + source.line()->elsewhere : ""};
}

// In slow motion a pass counts in the last phase; until then the means are those of the passes before it in its reply,
// nothing is said of the size of a tree, and at the end all is as outside of slow motion.
// The chat shows all of an own reply, and its speed: so do the figures, whatever pass is looked at.
TEST(WatchSource, OfAnOwnReplyThatIsWrittenAllPassesCount) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(ModelReady{.name = "a", .context = 512}));
  update(view, UiCommand(SendMessage{"Hello"}));
  update(view, Event(ReplyStarted{view.reply_id, 10, 0, 1, 1, 0}));
  TraceBuilder builder(3);
  builder.begin(DecodeMode::tree);
  size_t tokens = 0;
  double ms = 0;
  for (int i = 0; i < 6; ++i) {
    RoundRecord record = i % 2 == 0 ? builder.plain() : builder.tree(9);
    record.round = static_cast<uint32_t>(i);
    tokens += record.emitted.size();
    ms += record.ms.total();
    const std::vector<uint32_t> ends(record.emitted.size(), 1);
    update(view, Event(RoundFinished{view.reply_id, std::make_shared<const RoundRecord>(record), 1, 0, ends, false}));
  }
  WatchSource source;
  view.rounds.playback.shown = 1;
  view.rounds.playback.state = PlayState::paused;
  source.update(view);
  const double early = source.numbers().tokens_per_pass;
  ReplyFinished end;
  end.reply_id = view.reply_id;
  end.reason = FinishReason::stop_token;
  update(view, Event(end));
  for (const size_t shown : {0u, 1u, 5u}) {
    view.rounds.playback.shown = shown;
    source.update(view);
    EXPECT_NEAR(source.numbers().tokens_per_pass, static_cast<double>(tokens) / 6, 1e-9) << shown;
    EXPECT_NEAR(source.numbers().pass_ms, ms / 6, 1e-9) << shown;
  }
  EXPECT_NE(early, source.numbers().tokens_per_pass) << "while it is written, those up to the shown one";
}

TEST(WatchSource, NoFigureComesBeforeItsPhase) {
  ViewModel view;
  const auto log = std::make_shared<TraceLog>(CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace");
  show_log(view.rounds, log, "code");
  answer_chip(view);
  Playback& play = view.rounds.playback;
  const auto whole = [&](size_t round) {
    show(play, *log, round);
    return figures_of(view);
  };
  for (size_t round = 0; round < log->rounds(); ++round) {
    const bool goes_on = round > 0 && log->summary(round - 1).reply == log->summary(round).reply;
    const ShownFigures after = whole(round), before = goes_on ? whole(round - 1) : ShownFigures();
    ASSERT_NE(after.tokens, before.tokens);
    ASSERT_NE(after.cost, before.cost);
    show(play, *log, round);
    set_slow_motion(play, *log, true);
    play.state = PlayState::paused;
    for (uint32_t phase = 0; phase < kPhases; ++phase) {
      for (const float progress : {0.0f, 0.5f, 1.0f}) {
        play.phase = static_cast<Phase>(phase);
        play.progress = progress;
        const ShownFigures shown = figures_of(view);
        const bool kept = play.phase == Phase::commit && progress == 1;
        EXPECT_EQ(shown.tokens, kept ? after.tokens : before.tokens) << round << ", phase " << phase;
        EXPECT_EQ(shown.cost, kept ? after.cost : before.cost) << round << ", phase " << phase;
        EXPECT_EQ(shown.cost_title, kept ? after.cost_title : before.cost_title);
        EXPECT_EQ(shown.question, kept ? after.question : "") << "nothing of the pass before";
        if (kept) {
          EXPECT_EQ(shown, after);
        }
      }
    }
    set_slow_motion(play, *log, false);
    play.state = PlayState::paused;
  }
}

// Readers of the tour took figures of the pass before for a contradiction.
TEST(WatchSource, InTheTourTheFiguresOfItsPassStandStill) {
  ViewModel view;
  const auto log = std::make_shared<TraceLog>(CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace");
  show_log(view.rounds, log, "code");
  answer_chip(view);
  update_tour(view, ShowTour{});
  show_tour_step(view);
  const ShownFigures first = figures_of(view);
  EXPECT_FALSE(first.tokens.empty());
  EXPECT_FALSE(first.cost.empty());
  for (uint32_t step = 1; step < kTourSteps; ++step) {
    update_tour(view, StepTour{1});
    EXPECT_EQ(figures_of(view), first) << step;
  }
}

TEST(BudgetLine, SaysWhoSetTheSizeAndWhatWouldBeBest) {
  TraceBuilder builder(3);
  builder.begin(DecodeMode::tree);
  RoundRecord record = builder.tree(41);
  record.choice = {};
  const auto costs = test::costs_of(test::steep_cost);
  const ArReference plain = plain_at(kPlainMs);
  const BudgetLine line = budget_line(record, budget_view(record, costs.get(), plain), TreeSetBy::user, nullptr);
  EXPECT_EQ(line.question, "Why 40 guesses?");
  EXPECT_EQ(line.sentence, "You set them. Expected best: plain");
  EXPECT_EQ(line.badge, "predicted");
  EXPECT_TRUE(line.elsewhere.empty());
  ASSERT_FALSE(line.curve.empty());
  EXPECT_LE(line.curve.size(), 65u);
  for (const BudgetLine::Point& each : line.curve) {
    EXPECT_GE(each.x, 0);
    EXPECT_LE(each.x, 1);
    EXPECT_GE(each.y, 0);
    EXPECT_LE(each.y, 1);
  }
  EXPECT_EQ(line.curve.back().x, 1);
  EXPECT_NEAR(line.own.x, 1, 1e-6);
  EXPECT_GT(line.plain, 0.9f);
  Elsewhere elsewhere;
  elsewhere.device = "RTX 4090";
  elsewhere.guesses = 15;
  elsewhere.at_most = true;
  EXPECT_EQ(budget_line(record, budget_view(record, nullptr), TreeSetBy::user, &elsewhere).elsewhere,
            "best on an RTX 4090: 15");
  elsewhere.guesses = 40;  // no more were recorded
  EXPECT_EQ(budget_line(record, budget_view(record, nullptr), TreeSetBy::user, &elsewhere).elsewhere,
            "best on an RTX 4090: 40 or more");
  EXPECT_EQ(budget_line(record, budget_view(record, nullptr), TreeSetBy::user, &elsewhere).elsewhere_brief,
            "RTX 4090: 40+");
  elsewhere.guesses = 0;
  EXPECT_EQ(budget_line(record, budget_view(record, nullptr), TreeSetBy::user, &elsewhere).elsewhere,
            "best on an RTX 4090: none");
  // Where nothing was guessed nothing is known of what guessing would bring elsewhere.
  const RoundRecord plain_pass = builder.plain();
  const BudgetLine silent = budget_line(plain_pass, budget_view(plain_pass, nullptr), TreeSetBy::user, &elsewhere);
  EXPECT_EQ(silent.elsewhere + silent.elsewhere_brief, "");
  // Nothing was forecast: who set it is no prediction.
  EXPECT_EQ(budget_line(record, budget_view(record, nullptr), TreeSetBy::user, nullptr).badge, "");
  EXPECT_EQ(budget_line(record, budget_view(record, nullptr), TreeSetBy::user, nullptr).sentence, "You set them");
}

// Nothing is said to have been chosen where nobody chose.
TEST(BudgetLine, SaysWhoSetTheTree) {
  TraceBuilder builder(3);
  const auto says = [&](DecodeMode mode, bool plain, TreeSetBy set_by) {
    builder.begin(mode);
    RoundRecord record = plain ? builder.plain() : mode == DecodeMode::chain ? builder.chain(9) : builder.tree(9);
    record.choice = {};
    return budget_line(record, budget_view(record, nullptr), set_by, nullptr).sentence;
  };
  EXPECT_EQ(says(DecodeMode::tree, false, TreeSetBy::user), "You set them");
  EXPECT_EQ(says(DecodeMode::tree, false, TreeSetBy::recording), "Set when this was recorded");
  EXPECT_EQ(says(DecodeMode::tree, false, TreeSetBy::fallback), "Not chosen: a small tree, to be looked at");
  EXPECT_EQ(says(DecodeMode::adaptive, false, TreeSetBy::controller), "Chosen: the most tokens for their time");
  EXPECT_EQ(says(DecodeMode::ar, true, TreeSetBy::user), "Plain decoding was asked for");
  EXPECT_EQ(says(DecodeMode::ar, true, TreeSetBy::recording), "Plain decoding was set when this was recorded");
  EXPECT_EQ(says(DecodeMode::ar, true, TreeSetBy::fallback), "There is no drafter that could guess");
  EXPECT_EQ(says(DecodeMode::chain, false, TreeSetBy::user), "One line, as long as the drafter guesses");
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree})
    for (const TreeSetBy by : {TreeSetBy::user, TreeSetBy::recording, TreeSetBy::fallback})
      EXPECT_EQ(says(mode, mode == DecodeMode::ar, by).find("Chosen"), std::string::npos);
}

// "Chosen: the most tokens for their time. Expected best: plain" contradicted itself.
TEST(BudgetLine, GuessesThatAreNotExpectedToPayAreNotSaidToBeChosenForThat) {
  TraceBuilder builder(3);
  builder.begin(DecodeMode::adaptive);
  RoundRecord record = builder.tree(41);
  record.choice = {};
  const auto costs = test::costs_of(test::steep_cost);
  const ArReference plain = plain_at(kPlainMs);
  const auto says = [&] {
    return budget_line(record, budget_view(record, costs.get(), plain), TreeSetBy::controller, nullptr).sentence;
  };
  EXPECT_EQ(says(), "Tried, to see whether guessing pays by now. Expected best: plain");
  record = builder.chain(9);
  record.choice = {};
  EXPECT_EQ(says(), "One line, for what such lines brought lately. Expected best: plain");
}

TEST(BudgetLine, SaysWhatTheTextHadToDoWithIt) {
  TraceBuilder builder(3);
  builder.begin(DecodeMode::tree);
  RoundRecord record = builder.tree(9);
  record.choice = {};
  const auto says = [&] {
    return budget_line(record, budget_view(record, nullptr), TreeSetBy::user, nullptr).sentence;
  };
  EXPECT_EQ(says(), "You set them");
  record.match = 3;
  EXPECT_EQ(says(), "You set them. What the text suggests was left out");
  record.nodes[1].node.sources = kUsualSources;
  EXPECT_EQ(says(), "You set them. 1 of them was found in the text");
  for (size_t i = 1; i < record.nodes.size(); ++i) record.nodes[i].node.sources = kFromSuffix;
  record.ms.draft = 0;
  EXPECT_EQ(says(), "You set them. All found in the text, without the drafter");
}

TEST(WatchNumbers, NoTimeToGuessWhereNoDrafterWasAsked) {
  const auto log = std::make_shared<SampleLog>();
  for (size_t round = 0; round < 8; ++round) {
    RoundRecord pass = *trees_of(1, 41)->round(0);
    pass.ms.draft = 0;
    pass.match = 5;
    for (size_t i = 1; i < pass.nodes.size(); ++i) pass.nodes[i].node.sources = kFromSuffix;
    log->add(pass);
  }
  const Asked asked(log);
  const std::string why = watch_numbers(asked.question).cost.why;
  EXPECT_NE(why.find("none to guess, as all was found in the text, + 410 to check"), std::string::npos) << why;
}

TEST(BudgetLine, AChoiceThatIsTheBestIsNotRepeated) {
  TraceBuilder builder(2);
  builder.begin();
  const RoundRecord record = test::decided(builder.tree(64), test::tiled_cost, WidthObjective::per_round);
  ASSERT_EQ(record.shape, DecodeMode::tree);
  const BudgetLine line = budget_line(record, budget_view(record, nullptr), TreeSetBy::controller, nullptr);
  EXPECT_EQ(line.sentence, "Chosen: the most tokens for their time");
  const RoundRecord plain = test::decided(builder.tree(40), test::steep_cost, WidthObjective::per_round);
  ASSERT_EQ(plain.shape, DecodeMode::ar);
  EXPECT_EQ(budget_line(plain, budget_view(plain, nullptr), TreeSetBy::controller, nullptr).question,
            "Why no guesses?");
}

}  // namespace
}  // namespace canopy::app
