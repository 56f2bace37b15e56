// Files of sweeps: what was written is read back, and whatever is wrong is refused by the name of its field.

#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_journal.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/bench/sweep_samples.h"

namespace canopy {
namespace {

using nlohmann::json;

Sweep full_sweep() {
  Sweep sweep = test::measured_sweep();
  sweep.kind = SweepKind::comparison;
  sweep.baseline = 1;
  sweep.settings.sampling.temperature = 0.7f;
  sweep.settings.sampling.seed = UINT64_MAX;
  sweep.settings.policy = CostPolicy::paper;
  sweep.runs[3].differs_at = 17;
  sweep.runs[4].energy_j = 12.5;
  sweep.runs[4].clock_mhz = 2482;
  sweep.runs[4].temperature_c = 61;
  sweep.runs[5].reason = FinishReason::stop_token;
  return sweep;
}

std::string changed(const std::function<void(json&)>& change) {
  json object = json::parse(sweep_text(full_sweep()));
  change(object);
  return object.dump();
}

TEST(SweepFile, WhatWasWrittenIsReadBack) {
  const Sweep sweep = full_sweep(), read = parse_sweep(sweep_text(sweep));
  EXPECT_EQ(plan_difference(sweep, read), "");
  EXPECT_EQ(read.baseline, 1u);
  EXPECT_EQ(read.created, sweep.created);
  EXPECT_EQ(read.subjects, sweep.subjects);
  ASSERT_EQ(read.runs.size(), sweep.runs.size());
  for (size_t i = 0; i < read.runs.size(); ++i) EXPECT_EQ(to_json(read.runs[i]), to_json(sweep.runs[i]));
  EXPECT_EQ(read.runs[4].energy_j, 12.5);
  EXPECT_EQ(sweep_text(read), sweep_text(sweep));
}

TEST(SweepFile, ARecordingIsCalledOne) {
  test::expect_error("This is a recording", [] { parse_sweep("CanopyTr\x01\x02\x03"); });
}

TEST(SweepFile, TheMetadataAreComplete) {
  const json object = json::parse(sweep_text(full_sweep()));
  for (const char* field : {"format", "version", "kind", "canopy", "created", "cores", "subjects", "contestants",
                            "prompts", "settings", "baseline", "complete", "summary", "runs"})
    EXPECT_TRUE(object.contains(field)) << field;
  for (const char* field : {"model", "quantization", "drafter", "kv", "device", "driver", "kernels", "is_software"})
    EXPECT_TRUE(object["subjects"][0].contains(field)) << field;
  EXPECT_EQ(object["canopy"]["commit"], "1a2b3c");
}

TEST(SweepFile, UnknownFieldsAndASummaryOfOthersAreIgnored) {
  const Sweep read = parse_sweep(changed([](json& object) {
    object["later"] = {{"a", 1}};
    object["summary"] = "nonsense";
    object["runs"][0]["later"] = json::array({1, 2});
    object["subjects"][0]["later"] = nullptr;
  }));
  EXPECT_EQ(read.runs.size(), 12u);
}

TEST(SweepFile, HasNoPathAndNoText) {
  Sweep sweep = full_sweep();
  sweep.subjects[0].model = "evil\x1b]8;;\x07name";
  const std::string text = sweep_text(sweep);
  EXPECT_EQ(text.find('/'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

struct Refusal {
  const char* name;
  std::function<void(json&)> change;
  const char* says;
};

std::vector<Refusal> refusals() {
  return {
      {"another format", [](json& o) { o["format"] = "canopy-trace"; },
       "field 'format' of the sweep is 'canopy-trace'"},
      {"no format", [](json& o) { o.erase("format"); }, "lacks the field 'format'"},
      {"a newer version", [](json& o) { o["version"] = 2; }, "field 'version' of the sweep is 2; allowed: 1"},
      {"another kind", [](json& o) { o["kind"] = "race"; }, "field 'kind' of the sweep is 'race'"},
      {"no subjects", [](json& o) { o["subjects"] = json::array(); }, "has 0 subjects"},
      {"a list that is none", [](json& o) { o["contestants"] = 3; }, "field 'contestants'"},
      {"no contestants", [](json& o) { o["contestants"] = json::array(); },
       "field 'contestants' of the sweep is empty"},
      {"too many contestants", [](json& o) { o["contestants"] = std::vector<json>(257, o["contestants"][0]); },
       "field 'contestants' of the sweep is 257 entries long"},
      {"an unknown mode", [](json& o) { o["contestants"][0]["mode"] = "wide"; },
       "field 'mode' of contestant 0 is 'wide'"},
      {"a tree of nothing", [](json& o) { o["contestants"][2]["budget"] = nullptr; },
       "field 'budget' of contestant 2 is 0"},
      {"a huge tree", [](json& o) { o["contestants"][2]["budget"] = 1025; }, "field 'budget' of contestant 2 is 1025"},
      {"a chain with a budget", [](json& o) { o["contestants"][1]["budget"] = 4; },
       "field 'budget' of contestant 1 is 4"},
      {"a subject that is not there", [](json& o) { o["contestants"][1]["subject"] = 1; },
       "'subject' of a contestant is 1; the sweep has 1 subjects"},
      {"a baseline that is not there", [](json& o) { o["baseline"] = 3; }, "'baseline' is 3"},
      {"no prompts", [](json& o) { o["prompts"] = json::array(); }, "field 'prompts' of the sweep is empty"},
      {"too many categories",
       [](json& o) {
         o["prompts"] = json::array();
         for (int i = 0; i < 101; ++i) o["prompts"].push_back({{"id", "p"}, {"category", std::to_string(i)}});
       },
       "are of 101 categories; allowed: at most 100"},
      {"no settings", [](json& o) { o.erase("settings"); }, "lacks the field 'settings'"},
      {"no repeats", [](json& o) { o["settings"]["repeats"] = 0; }, "'repeats' of the settings is 0"},
      {"too many repeats", [](json& o) { o["settings"]["repeats"] = 1001; }, "'repeats' of the settings is 1001"},
      {"more runs than a file holds",
       [](json& o) {
         o["settings"]["repeats"] = 1000;
         for (int i = 0; i < 25; ++i) o["prompts"].push_back({{"id", "p"}, {"category", "code"}});
       },
       "3 columns, 27 prompts and 1000 repeats are 81000 runs; at most 80000 are allowed"},
      {"a hot temperature", [](json& o) { o["settings"]["temperature"] = 1e9; }, "'temperature' of the settings"},
      {"an unknown policy", [](json& o) { o["settings"]["policy"] = "x"; }, "'policy' of the settings is 'x'"},
      {"a long name", [](json& o) { o["subjects"][0]["model"] = std::string(1000, 'a'); },
       "'model' of subject 0 is 1000 bytes long"},
      {"a name that is a number", [](json& o) { o["subjects"][0]["device"] = 3; }, "'device' of subject 0"},
      {"a column that is not there", [](json& o) { o["runs"][5]["contestant"] = 3; }, "'contestant' of run 5 is 3"},
      {"a prompt that is not there", [](json& o) { o["runs"][5]["prompt"] = 2; }, "'prompt' of run 5 is 2"},
      {"a repeat that is not there", [](json& o) { o["runs"][5]["repeat"] = 2; }, "'repeat' of run 5 is 2"},
      {"a run twice", [](json& o) { o["runs"][5] = o["runs"][0]; }, "Run 5 is there twice"},
      {"a negative time", [](json& o) { o["runs"][5]["decode_ms"] = -1; }, "'decode_ms' of run 5 is -1.0"},
      {"a time without end", [](json& o) { o["runs"][5]["decode_ms"] = 1e300; }, "'decode_ms' of run 5 is 1e+300"},
      {"a time that is text", [](json& o) { o["runs"][5]["decode_ms"] = "fast"; }, "'decode_ms' of run 5"},
      {"negative tokens", [](json& o) { o["runs"][5]["tokens"] = -4; }, "'tokens' of run 5 is -4"},
      {"tokens in parts", [](json& o) { o["runs"][5]["tokens"] = 4.5; }, "'tokens' of run 5 is 4.5"},
      {"more rounds than tokens", [](json& o) { o["runs"][5]["rounds"] = 101; }, "'rounds' of run 5 is 101"},
      {"rounds without rows", [](json& o) { o["runs"][5]["rows"] = 1; }, "'rows' of run 5 is 1"},
      {"an unknown reason", [](json& o) { o["runs"][5]["reason"] = "bored"; }, "'reason' of run 5 is 'bored'"},
      {"negative energy", [](json& o) { o["runs"][5]["energy_j"] = -2; }, "'energy_j' of run 5"},
      {"a stage of negative time", [](json& o) { o["runs"][5]["stage_ms"]["draft"] = -1; },
       "'draft' of stage_ms of run 5"},
      {"a run that is none", [](json& o) { o["runs"][5] = "x"; }, "Run 5 must be a JSON object"},
      {"no runs", [](json& o) { o["runs"] = 5; }, "field 'runs'"},
  };
}

TEST(SweepFile, RefusesWhatIsWrongByItsName) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.name);
    std::string message = test::error_of([&] { parse_sweep(changed(refusal.change)); });
    if (std::string_view(refusal.name) == "a run that is none") message.replace(0, 1, "R");
    EXPECT_NE(message.find(refusal.says), std::string::npos) << "expected: " << refusal.says << "\nactual: " << message;
  }
}

TEST(SweepFile, ASweepWithoutRunsIsOne) {
  const Sweep read = parse_sweep(sweep_text(test::some_sweep()));
  EXPECT_TRUE(read.runs.empty());
  EXPECT_FALSE(read.complete());
}

TEST(SweepFile, TextThatIsNoJsonIsRefused) {
  for (const char* text : {"", "{", "[]", "null", "\n\n", "{}", "\xff\xfe"}) test::error_of([&] { parse_sweep(text); });
}

TEST(SweepFile, EveryCutIsRefusedOrASweep) {
  const std::string text = sweep_text(test::some_sweep(1));
  for (size_t size = 0; size + 2 < text.size(); size += 7) test::error_of([&] { parse_sweep(text.substr(0, size)); });
}

TEST(SweepFile, NamesTheFileInARefusal) {
  test::TempFolder folder;
  test::expect_error("other.json", [&] { read_sweep(folder.write("other.json", "{}")); });
  test::expect_error("absent.json", [&] { read_sweep(folder.path() / "absent.json"); });
}

}  // namespace
}  // namespace canopy
