#include "app/state/drafting.h"

#include <gtest/gtest.h>

#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::test {
namespace {

using namespace canopy::app;

ModelReady drafted_model(bool is_software) {
  ModelReady model = small_model();
  model.drafter = "drafter.gguf";
  model.is_software = is_software;
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

TEST(Drafting, SuitsTheDeviceUntilTheUserChooses) {
  EXPECT_EQ(mode_for({}, small_model()), DecodeMode::ar);
  EXPECT_EQ(mode_for(DecodeMode::tree, small_model()), DecodeMode::ar);  // there is no drafter
  EXPECT_EQ(mode_for({}, drafted_model(false)), DecodeMode::adaptive);
  EXPECT_EQ(mode_for({}, drafted_model(true)), DecodeMode::tree);
  EXPECT_EQ(mode_for(DecodeMode::ar, drafted_model(true)), DecodeMode::ar);
  EXPECT_EQ(mode_for(DecodeMode::chain, drafted_model(false)), DecodeMode::chain);
}

TEST(Drafting, TheChoiceGoesWithTheNextReply) {
  ViewModel view = view_with(drafted_model(true));
  EXPECT_EQ(sent(update(view, UiCommand(SendMessage{"Hello"}))).mode, DecodeMode::tree);
  update(view, Event(ReplyFinished{view.reply_id, FinishReason::stop_token, 1, 0, 1, 9, 1, 1, 1}));
  EXPECT_TRUE(update(view, UiCommand(SetDrafting{DecodeMode::ar})).engine.empty());
  EXPECT_EQ(sent(update(view, UiCommand(RunAgain{}))).mode, DecodeMode::ar);
}

TEST(Drafting, SaysWhenPlainDecodingWouldHaveBeenClearlyFaster) {
  ReplyFinished reply;
  reply.mode = DecodeMode::tree;
  reply.tokens_per_second = 10;
  reply.ar_tokens_per_second = 18;
  EXPECT_EQ(ar_verdict({}, reply), "Plain decoding is about 1.8\u00d7 faster on this device.");
  EXPECT_EQ(short_ar_verdict(reply, WindowLayout::lab), "AR is 1.8\u00d7 faster here");
  EXPECT_EQ(short_ar_verdict(reply, WindowLayout::watch), "Plain is 1.8\u00d7 faster here");
  EXPECT_EQ(ar_verdict(DecodeMode::tree, reply), "");  // the user chose the mode
  reply.ar_tokens_per_second = 10.5;
  EXPECT_EQ(ar_verdict({}, reply), "");
  reply.ar_tokens_per_second = 0;  // not measured
  EXPECT_EQ(ar_verdict({}, reply), "");
  reply.ar_tokens_per_second = 18;
  reply.mode = DecodeMode::adaptive;  // adaptive uses plain decoding by itself where that is faster
  EXPECT_EQ(ar_verdict({}, reply), "");
}

}  // namespace
}  // namespace canopy::test
