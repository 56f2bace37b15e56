// The answers of the application: of a recording, and of a reply of the engine that is still being written.

#include "app/state/what_if.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/base/error.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

using app::WhatIfAnswer;
using app::WhatIfQuestion;

std::shared_ptr<const TraceReader> demo_trace() {
  return std::make_shared<const TraceReader>(TraceReader::open(CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"));
}

WhatIfAnswer answer_to(const WhatIfQuestion& question, size_t* told = nullptr) {
  const auto tell = [&](const WhatIfAnswer&) {
    if (told != nullptr) ++*told;
  };
  return answer_what_if(question, tell, {});
}

TEST(WhatIfAnswers, WhatIsWrongWithOneDeviceIsSaidOfItAlone) {
  WhatIfQuestion question;
  question.number = 4;
  question.trace = demo_trace();
  question.header = question.trace->header();
  question.calibrations = {"/nonexistent/card.json"};
  question.devices = {"h100", "abacus"};
  size_t told = 0;
  const WhatIfAnswer answer = answer_to(question, &told);
  EXPECT_EQ(told, 4u);
  ASSERT_EQ(answer.there.size(), 4u);
  EXPECT_EQ(answer.there[0]->problem, "");
  EXPECT_NE(answer.there[1]->problem.find("card.json"), std::string::npos);
  EXPECT_EQ(answer.there[2]->problem, "");
  EXPECT_NE(answer.there[3]->problem.find("abacus"), std::string::npos);
  EXPECT_GT(answer.there[2]->ms_of_many, answer.there[2]->ms_of_one * 0.99);
}

/// As it is seen while the engine writes: records alone.
TEST(WhatIfAnswers, AReplyUnderWayIsCutNarrowerAndSaysSo) {
  const auto trace = demo_trace();
  WhatIfQuestion question;
  question.header = trace->header();
  question.first_token = *trace->replies()[0].prefill->first_token;
  question.ar_tokens_per_second = 20;
  for (size_t i = 0; i < 30; ++i) question.rounds.push_back(std::make_shared<const RoundRecord>(trace->round(i)));
  question.devices = {"strix-halo"};
  const WhatIfAnswer answer = answer_to(question);
  ASSERT_EQ(answer.there.size(), 2u);
  const app::WhatIfThere& here = *answer.there[0];
  EXPECT_EQ(here.problem, "");
  EXPECT_LE(here.run.rounds.size(), 30u);
  EXPECT_GE(here.run.rounds.size(), 29u);
  EXPECT_EQ(here.run.rounds.front().record.ms, question.rounds.front()->ms);
  const app::WhatIfThere& there = *answer.there[1];
  EXPECT_EQ(there.problem, "");
  EXPECT_GT(there.run.rounds.size(), 10u);
  for (const WhatIfRound& round : there.run.rounds) EXPECT_LE(round.record.width, 25u);
}

/// The costs that the rounds were planned by may be of another day and load.
TEST(WhatIfAnswers, PlainDecodingHereIsWhatItTookInTheMinutesOfTheReply) {
  WhatIfQuestion question;
  question.trace = demo_trace();
  question.header = question.trace->header();
  const WhatIfAnswer planned = answer_to(question);
  question.plain_ms = 1000;
  const WhatIfAnswer beside = answer_to(question);
  ASSERT_EQ(beside.there.size(), 1u);
  const app::WhatIfThere& here = *beside.there[0];
  EXPECT_EQ(here.problem, "");
  EXPECT_DOUBLE_EQ(here.run.ar_tokens_per_second(), 1);
  EXPECT_EQ(here.run.tokens, planned.there[0]->run.tokens);
  EXPECT_DOUBLE_EQ(here.run.ms, planned.there[0]->run.ms);
  EXPECT_GT(here.summary.ratio, planned.there[0]->summary.ratio);
}

/// What its prompt suggested is found there again.
TEST(WhatIfAnswers, AReplyUnderWayKnowsItsPrompt) {
  WhatIfQuestion question;
  question.header = demo_trace()->header();
  question.header.drafter.reset();
  question.first_token = 3;
  question.ended = true;
  question.brief = true;
  question.devices = {"strix-halo"};
  RoundRecord found;
  found.mode = found.shape = DecodeMode::tree;
  found.context = 8;
  found.width = 5;
  found.accepted = 4;
  found.match = 3;
  found.emitted = {4, 5, 6, 1, 2};
  found.nodes.resize(5);
  for (uint32_t i = 0; i < 5; ++i) found.nodes[i].state = NodeState::accepted;
  for (uint32_t i = 1; i < 5; ++i)
    found.nodes[i].node = {found.emitted[i - 1], i - 1, i, 0, -0.1, -0.1 * i, kFromSuffix, {1, 1}};
  RoundRecord plain;
  plain.mode = DecodeMode::tree;
  plain.context = 13;
  plain.round = 1;
  plain.emitted = {9};
  for (const RoundRecord& round : {found, plain}) question.rounds.push_back(std::make_shared<const RoundRecord>(round));
  for (const bool knows : {true, false}) {
    SCOPED_TRACE(knows);
    question.before = std::make_shared<const std::vector<uint32_t>>(std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 1, 2});
    if (!knows) question.before = nullptr;
    const WhatIfAnswer answer = answer_to(question);
    ASSERT_EQ(answer.there.size(), 1u);
    EXPECT_EQ(answer.there[0]->problem, "");
    ASSERT_FALSE(answer.there[0]->run.rounds.empty());
    const RoundRecord& first = answer.there[0]->run.rounds.front().record;
    EXPECT_EQ(first.match, knows ? 3u : 0u);
    EXPECT_EQ(first.accepted > 0, knows) << first.choice.reason;
  }
}

/// A reply that was written plainly beside a drafter: nobody knows what the drafter would have guessed.
TEST(WhatIfAnswers, WhereNothingIsKnownOfGuessesElsewhereIsPlainDecoding) {
  const auto trace = demo_trace();
  WhatIfQuestion question;
  question.header = trace->header();
  question.first_token = *trace->replies()[0].prefill->first_token;
  question.devices = {"rtx4090"};
  for (uint32_t i = 0; i < 20; ++i) {
    RoundRecord plain;
    plain.mode = DecodeMode::adaptive;
    plain.round = i;
    plain.context = 40 + i;
    plain.emitted = {i + 5};
    plain.ms = trace->round(0).ms;
    question.rounds.push_back(std::make_shared<const RoundRecord>(plain));
  }
  const WhatIfAnswer answer = answer_to(question);
  ASSERT_EQ(answer.there.size(), 2u);
  const app::WhatIfThere& there = *answer.there[1];
  EXPECT_EQ(there.problem, "");
  EXPECT_EQ(there.run.tokens, 20u);
  EXPECT_EQ(there.run.rounds.size(), 20u);
  EXPECT_GT(there.run.ar_tokens_per_second(), 0);
  EXPECT_EQ(there.summary.ratio, 0);
  EXPECT_NE(there.summary.verdict.find("Too little was guessed here"), std::string::npos) << there.summary.verdict;
}

TEST(WhatIfAnswers, ItStopsWhenAsked) {
  WhatIfQuestion question;
  question.trace = demo_trace();
  question.header = question.trace->header();
  question.devices = {"h100"};
  std::stop_source stop;
  stop.request_stop();
  try {
    answer_what_if(
        question, [](const WhatIfAnswer&) {}, stop.get_token());
    FAIL() << "went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
}

TEST(WhatIfAnswers, FilesAreKnownByTheirContents) {
  const TempFolder folder;
  EXPECT_TRUE(app::looks_like_calibration(folder.write("a.json", R"({"format": "canopy-calibration"})")));
  EXPECT_FALSE(app::looks_like_calibration(folder.write("b.json", R"({"format": "something"})")));
  EXPECT_FALSE(app::looks_like_calibration(folder.write("c.txt", R"({"format": "canopy-calibration"})")));
  EXPECT_FALSE(app::looks_like_calibration(folder.write("d.json", "")));
  EXPECT_FALSE(app::looks_like_calibration(folder.path()));
}

}  // namespace
}  // namespace canopy::test
