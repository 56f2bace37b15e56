#include "engine/bench/sweep_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/bench/sweep_file.h"
#include "tests/bench/sweep_samples.h"

namespace canopy {
namespace {

using nlohmann::json;

/// Acceptance criterion 16: the CSV says what the JSON says.
TEST(SweepTable, TheRunsAsCsvAreThoseOfTheJson) {
  Sweep sweep = test::measured_sweep();
  sweep.runs[3].decode_ms = 1.0 / 3;
  sweep.runs[4].energy_j = 0.1;
  sweep.runs[5].differs_at = 3;
  sweep.prompts[1].id = "with, comma";
  const json object = json::parse(sweep_text(sweep));
  const TextTable table = runs_table(sweep);
  ASSERT_EQ(table.rows.size(), object["runs"].size());
  const auto cell = [&](size_t row, const std::string& column) {
    const auto found = std::ranges::find(table.columns, column);
    return table.rows[row].at(static_cast<size_t>(found - table.columns.begin()));
  };
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const json& run = object["runs"][i];
    for (const char* field : {"contestant", "repeat", "place", "prompt_tokens", "reused_tokens", "tokens", "rounds",
                              "rows", "widest", "prefill_ms", "decode_ms", "energy_j", "differs_at"}) {
      if (run[field].is_null())
        EXPECT_EQ(cell(i, field), "") << field;
      else
        EXPECT_EQ(std::stod(cell(i, field)), run[field].get<double>()) << field;
    }
    for (const char* stage : {"draft", "build", "verify", "walk", "commit", "other"})
      EXPECT_EQ(std::stod(cell(i, std::string(stage) + "_ms")), run["stage_ms"][stage].get<double>());
    EXPECT_EQ(cell(i, "text_hash"), run["text_hash"]);
    EXPECT_EQ(cell(i, "prompt"), object["prompts"][run["prompt"].get<size_t>()]["id"]);
  }
  EXPECT_NE(as_csv(table).find("\"with, comma\""), std::string::npos);
}

TEST(SweepTable, TheSummaryHasARowForEachCell) {
  const Sweep sweep = test::measured_sweep();
  const TextTable table = summary_table(sweep, 0);
  EXPECT_EQ(table.rows.size(), 9u);
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  const std::string markdown = as_markdown(table);
  EXPECT_NE(markdown.find("| all | tree 16 | 303.00 | 4.24 | 3.000 | 0.000 | 3.000 | 0.000 | 2.50 |"),
            std::string::npos)
      << markdown;
  EXPECT_EQ(markdown.find("J/token"), std::string::npos) << "nothing told the energy";
}

Sweep elsewhere() {
  Sweep sweep = test::measured_sweep(3);
  sweep.subjects[0].device = "A slower GPU";
  for (MeasuredRun& run : sweep.runs) run.decode_ms *= 2;
  return sweep;
}

TEST(SweepOverlay, MatchesWaysOverThePromptsThatBothHave) {
  Sweep theirs = elsewhere();
  theirs.prompts[1].hash = "another";
  theirs.contestants[1].way = {DecodeMode::tree, 64};
  theirs.runs[0].text_hash = "different";  // of the first prompt in the first repeat
  const OverlayResult result = overlay(test::measured_sweep(2), theirs);
  EXPECT_EQ(result.prompts, 1u);
  ASSERT_EQ(result.rows.size(), 2u) << "ar and tree 16";
  EXPECT_EQ(result.rows[0].way.name(), "ar");
  EXPECT_EQ(result.rows[1].way.name(), "tree 16");
  EXPECT_NEAR(result.rows[0].times_theirs.value, 101 / 51.0, 1e-9);
  EXPECT_TRUE(result.rows[0].times_theirs.has_error());
  EXPECT_GT(result.rows[0].times_theirs.error, 0);
  EXPECT_NEAR(result.rows[1].ours.times_plain.value, 3, 1e-9);
  EXPECT_EQ(result.rows[0].texts + result.rows[1].texts, 2u);
  EXPECT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(overlay_name(theirs, test::measured_sweep()), "A slower GPU");
}

TEST(SweepOverlay, SaysWhatElseDiffers) {
  Sweep theirs = elsewhere();
  theirs.settings.max_tokens = 64;
  theirs.subjects[0].quantization = "Q8_0";
  const OverlayResult result = overlay(test::measured_sweep(2), theirs);
  ASSERT_EQ(result.notes.size(), 3u);
  EXPECT_EQ(result.notes[0], "The longest replies differ: 100 tokens here, 64 tokens there.");
  EXPECT_NE(result.notes[1].find("Q4_1 here"), std::string::npos);
  EXPECT_EQ(result.notes[2], "The replies end elsewhere or are drawn otherwise, so their texts are not compared.");
  for (const OverlayRow& row : result.rows) EXPECT_EQ(row.texts, 0u);
  for (const auto& row : overlay_table(test::measured_sweep(2), theirs).table.rows) EXPECT_EQ(row.back(), "-");
}

// Which variants timing chose is a list of hundreds of words; that they are others is enough.
TEST(SweepOverlay, SaysOfKernelsWhatAReaderCanUse) {
  Sweep theirs = elsewhere();
  theirs.subjects[0].kernels += "; linear Q4_1 960x576 x4 (4 rows, 8 lanes)";
  theirs.settings.sampling.temperature = 0.7f;
  OverlayResult result = overlay(test::measured_sweep(2), theirs);
  ASSERT_EQ(result.notes.size(), 3u);
  EXPECT_EQ(result.notes[0],
            "The ways to choose tokens differ: the likeliest token here, temperature 0.7, seed 0 there.");
  EXPECT_EQ(result.notes[1], "Of the same kernels, timing chose other variants on the two devices.");
  theirs.subjects[0].kernels = "8 matrix; 576x576 (rows 4)";
  EXPECT_EQ(overlay(test::measured_sweep(2), theirs).notes.at(1), "The kernels differ: 7 matrix here, 8 matrix there.");
}

TEST(SweepOverlay, WithoutCommonPromptsThereIsNothing) {
  Sweep theirs = elsewhere();
  for (SweepPrompt& prompt : theirs.prompts) prompt.hash = "x" + prompt.hash;
  const OverlayResult result = overlay(test::measured_sweep(2), theirs);
  EXPECT_TRUE(result.rows.empty());
  EXPECT_EQ(result.notes.front(), "0 prompts are in both; the others are left out.");
}

TEST(SweepOverlay, IsATable) {
  const Overlay overlay = overlay_table(test::measured_sweep(2), elsewhere());
  EXPECT_EQ(overlay.name, "A slower GPU");
  ASSERT_EQ(overlay.table.rows.size(), 3u);
  for (const auto& row : overlay.table.rows) EXPECT_EQ(row.size(), overlay.table.columns.size());
  EXPECT_NE(sweep_headline(elsewhere()).find("on A slower GPU (driver 1); canopy 0.1 at 1a2b3c, 2026-11-24"),
            std::string::npos);
}

}  // namespace
}  // namespace canopy
