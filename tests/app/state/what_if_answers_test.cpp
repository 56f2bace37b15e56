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
