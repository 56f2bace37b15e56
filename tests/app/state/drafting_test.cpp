#include "app/state/chat_update.h"

#include <gtest/gtest.h>

#include "app/state/recording.h"
#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

using namespace canopy::app;

ModelReady drafted_model(const std::string& device_type = "discrete") {
  ModelReady model = small_model();
  model.drafter = "drafter.gguf";
  model.device_type = device_type;
  return model;
}

ViewModel view_with(const ModelReady& model) {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(model));
  return view;
}

const Generate& sent(const Effects& effects) {
  return std::get<Generate>(effects.engine.at(0));
}

// What passes take decides there, not the kind of device.
TEST(Drafting, IsAdaptiveOnEveryDeviceUntilTheUserChooses) {
  for (const char* type : {"discrete", "integrated", "virtual", "cpu", "software"}) {
    ViewModel view = view_with(drafted_model(type));
    EXPECT_EQ(sent(update(view, UiCommand(SendMessage{"Hello"}))).mode, DecodeMode::adaptive) << type;
  }
}

TEST(Drafting, TheChoiceGoesWithTheNextReply) {
  ViewModel view = view_with(drafted_model());
  EXPECT_EQ(sent(update(view, UiCommand(SendMessage{"Hello"}))).mode, DecodeMode::adaptive);
  update(view, Event(ReplyFinished{view.reply_id, FinishReason::stop_token, 1, 0, 1, 9, 1, 1, 1}));
  EXPECT_TRUE(update(view, UiCommand(SetDrafting{DecodeMode::ar})).engine.empty());
  EXPECT_EQ(sent(update(view, UiCommand(RunAgain{}))).mode, DecodeMode::ar);
}

TEST(Drafting, TheSourcesGoWithTheNextReply) {
  ViewModel view = view_with(drafted_model());
  const auto asked = [&](const UiCommand& command) {
    const DraftSources sources = sent(update(view, command)).sources;
    update(view, Event(ReplyFinished{view.reply_id, FinishReason::stop_token, 1, 0, 1, 9, 1, 1, 1}));
    return sources;
  };
  EXPECT_EQ(asked(SendMessage{"Hello"}), kUsualSources);
  EXPECT_TRUE(update(view, UiCommand(AskSource{kFromDflash, false})).engine.empty());
  EXPECT_EQ(asked(RunAgain{}), kFromSuffix);
  update(view, UiCommand(AskSource{kFromSuffix, false}));
  EXPECT_EQ(asked(RunAgain{}), DraftSources{0});
  update(view, UiCommand(AskSource{kFromDflash, true}));
  EXPECT_EQ(asked(RunAgain{}), kFromDflash);
  update(view, UiCommand(AskSource{kFromEarlier, true}));
  EXPECT_EQ(asked(RunAgain{}), kFromDflash | kFromEarlier) << "chosen by the user alone";
  update(view, UiCommand(AskSource{0xff, true}));
  EXPECT_EQ(view.draft_sources, kAllSources) << "there are no others";
}

/// Writes one round to the reply that was asked for, and ends it.
void write_round(ViewModel& view, DecodeMode mode) {
  auto record = std::make_shared<RoundRecord>();
  record->mode = mode;
  record->shape = mode == DecodeMode::adaptive ? DecodeMode::ar : mode;
  record->emitted = {7};
  update(view, Event(ReplyStarted{view.reply_id, 20, 0, 10, 5}));
  update(view, Event(RoundFinished{view.reply_id, record, 1, 0, {0}, false}));
  ReplyFinished finished;
  finished.reply_id = view.reply_id;
  finished.mode = mode;
  update(view, Event(finished));
}

/// Who set the tree of the newest round.
TreeSetBy newest_set_by(const ViewModel& view) {
  const RoundLog& log = *view.rounds.log;
  return tree_set_by(view, *log.round(log.rounds() - 1), log.replies().size() - 1);
}

TEST(Drafting, WhoSetTheTreeStaysWithItsReply) {
  ViewModel view = view_with(drafted_model());
  const auto asked = [&] {
    const Effects effects = update(view, UiCommand(SendMessage{"Hello"}));
    write_round(view, *sent(effects).mode);
    return newest_set_by(view);
  };
  EXPECT_EQ(asked(), TreeSetBy::controller);
  update(view, UiCommand(SetDrafting{DecodeMode::tree}));
  EXPECT_EQ(newest_set_by(view), TreeSetBy::controller) << "the choice is for later replies";
  EXPECT_EQ(asked(), TreeSetBy::user);
  update(view, UiCommand(SetDrafting{DecodeMode::ar}));
  EXPECT_EQ(asked(), TreeSetBy::user);
  update(view, UiCommand(SetDrafting{DecodeMode::adaptive}));
  EXPECT_EQ(asked(), TreeSetBy::controller);
}

TEST(Drafting, AModelWithoutADrafterIsAskedForTreesToo) {
  ViewModel view = view_with(small_model());
  const auto asked = [&] {
    const Generate request = sent(update(view, UiCommand(SendMessage{"Hello"})));
    EXPECT_NE(request.sources & kFromSuffix, 0);
    write_round(view, *request.mode);
    return newest_set_by(view);
  };
  EXPECT_EQ(asked(), TreeSetBy::controller);
  update(view, UiCommand(SetDrafting{DecodeMode::tree}));
  EXPECT_EQ(asked(), TreeSetBy::user);
}

/// Before guesses came from the text, too, nobody had asked for plain decoding where there was no drafter, nor for
/// small trees where the device was software.
TEST(Drafting, WhatAnEarlierChatWasWrittenWithWasNotAskedFor) {
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::tree}) {
    ViewModel view = view_with(small_model());
    update(view, UiCommand(SendMessage{"Hello"}));
    view.messages.back().parameters.mode_chosen = false;
    write_round(view, mode);
    EXPECT_EQ(newest_set_by(view), TreeSetBy::fallback);
  }
}

TEST(Drafting, ARecordingDoesNotSayWhoSetItsTrees) {
  const TempFolder folder;
  const std::string file = (folder.path() / "run.canopytrace").string();
  for (const DecodeMode mode : {DecodeMode::tree, DecodeMode::adaptive}) {
    TraceBuilder builder;
    {
      TraceWriter trace(file, builder.header(), builder.pieces());
      trace.begin(builder.begin(mode));
      trace.prefilled(builder.prefill());
      trace.append(builder.tree(9));
      trace.end(builder.end());
      trace.finish();
    }
    ViewModel view = view_with(drafted_model());
    open_trace(view, file);
    EXPECT_EQ(newest_set_by(view), mode == DecodeMode::tree ? TreeSetBy::recording : TreeSetBy::controller);
  }
}

TEST(Drafting, PlainAndGuessingAreASwitchThatGoesBack) {
  ViewModel view = view_with(drafted_model());
  EXPECT_TRUE(is_guessing(view));
  update(view, UiCommand(SetGuessing{false}));
  EXPECT_EQ(view.drafting, DecodeMode::ar);
  EXPECT_FALSE(is_guessing(view));
  update(view, UiCommand(SetGuessing{true}));
  EXPECT_EQ(view.drafting.value_or(kUsualMode), DecodeMode::adaptive) << "as it was, which is the default";
  for (const DecodeMode before : {DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive}) {
    update(view, UiCommand(SetDrafting{before}));
    update(view, UiCommand(SetDrafting{DecodeMode::ar}));  // in whatever way it is chosen
    update(view, UiCommand(SetGuessing{false}));           // twice is once
    update(view, UiCommand(SetGuessing{true}));
    EXPECT_EQ(view.drafting, before);
  }
}

ReplyFinished written_at(double tokens_per_second, double plain) {
  ReplyFinished reply;
  reply.mode = DecodeMode::tree;
  reply.tokens_per_second = tokens_per_second;
  if (plain > 0) reply.plain = {1000 / plain, 3, false};
  return reply;
}

TEST(PlainVerdict, SaysBothWaysWhatGuessingMadeOfTheSpeed) {
  const PlainVerdict faster = plain_verdict(written_at(31.3, 25.1));
  EXPECT_EQ(faster.words.front(), "here 31 tok/s, plain 25: 1.2\u00d7 faster");
  EXPECT_EQ(faster.words.back(), "1.2\u00d7 faster than plain");
  EXPECT_NE(faster.why.find("3 plain passes, timed right behind this reply"), std::string::npos) << faster.why;
  EXPECT_FALSE(faster.slower());
  const PlainVerdict slower = plain_verdict(written_at(10, 18));
  EXPECT_EQ(slower.words.front(), "here 10 tok/s, plain 18: 1.8\u00d7 slower");
  EXPECT_TRUE(slower.slower());
  EXPECT_EQ(plain_verdict(written_at(25, 24.4)).words.front(), "here 25 tok/s, plain 24: as fast");
  EXPECT_EQ(plain_verdict(written_at(31.3, 25.1), "llvmpipe").words.front(),
            "on llvmpipe 31 tok/s, plain 25: 1.2\u00d7 faster");
  ReplyFinished own = written_at(20, 10);
  own.plain = {100, 14, true};
  EXPECT_NE(plain_verdict(own).why.find("14 plain passes of this very reply"), std::string::npos);
}

TEST(PlainVerdict, SaysNothingWithoutAMeasurementOfTheSameMinutes) {
  ReplyFinished reply = written_at(10, 0);
  reply.ar_tokens_per_second = 18;  // of the calibration, on another load
  EXPECT_FALSE(plain_verdict(reply).known());
  EXPECT_FALSE(plain_verdict(written_at(0, 18)).known());
  reply = written_at(10, 18);
  reply.mode = DecodeMode::adaptive;
  EXPECT_TRUE(plain_verdict(reply).known());
  reply.mode = DecodeMode::ar;  // it is plain itself
  EXPECT_FALSE(plain_verdict(reply).known());
}

}  // namespace
}  // namespace canopy::test
