// Sweeps and comparisons as pages and Markdown: what is said, and what foreign files cannot do.

#include "app/export/results_page.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/bench/sweep_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/bench/sweep_samples.h"

namespace canopy::app {
namespace {

using test::expect_error;

Results results_of(const Sweep& sweep) {
  return {sweep, sweep_text(sweep)};
}

/// Trees of two widths, so that there is a curve.
Sweep with_widths() {
  Sweep sweep = test::some_sweep(3);
  sweep.contestants.push_back({{DecodeMode::tree, 32}, 0});
  for (const RunKey& key : run_order(sweep.counts(), 1)) {
    MeasuredRun run = test::some_run(key, 100.0 * (key.contestant + 1) + key.repeat);
    run.place = static_cast<uint32_t>(sweep.runs.size());
    sweep.runs.push_back(run);
  }
  return sweep;
}

Sweep elsewhere() {
  Sweep sweep = test::measured_sweep();
  sweep.subjects[0].device = "A slower GPU";
  return sweep;
}

TEST(Results, ThePageHasVerdictPlotsMachineFiguresAndTheRawFile) {
  const std::vector<Results> all = {results_of(with_widths())};
  const std::string page = results_page(all);
  for (const char* words :
       {"Sweep on A very good GPU", "Tree 32 is 3.9", "Times plain decoding", "driver 1", "Tokens a second",
        "Tokens a pass", "7 matrix", "2 prompts (gsm 1, he 1)", "0.1 at 1a2b3c", "&quot;canopy-sweep&quot;"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  EXPECT_EQ(page.find("Joules a token"), std::string::npos) << "nothing told the energy";
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("http"), page.find("http-equiv")) << "nothing is loaded";
}

// A step of a quarter is said with its digits.
TEST(Results, TicksAreNotRounded) {
  Sweep sweep = with_widths();
  for (MeasuredRun& run : sweep.runs)
    if (sweep.contestants[run.key.contestant].way.mode != DecodeMode::ar) run.decode_ms *= 8;
  const std::vector<Results> all = {results_of(sweep)};
  const std::string page = results_page(all);
  EXPECT_NE(page.find(">0.25</text>"), std::string::npos);
  EXPECT_NE(page.find(">0.75</text>"), std::string::npos);
  EXPECT_EQ(page.find(">0.2</text>"), std::string::npos);
  EXPECT_NE(page.find("Plain is the fastest here"), std::string::npos);
  EXPECT_NE(page.find("<tr class=\"whole\">"), std::string::npos);
}

// The file keeps its short names; a reader of the page gets words, and their meaning.
TEST(Results, HeadingsOfThePageAreWordsThatAreExplained) {
  const std::vector<Results> all = {results_of(test::measured_sweep()), results_of(elsewhere())};
  const std::string page = results_page(all);
  for (const char* heading : {">tokens per pass</th>", ">\u00d7 plain</th>", ">width</th>", ">their \u00d7 plain</th>"})
    EXPECT_NE(page.find(heading), std::string::npos) << heading;
  for (const char* bare : {">tau</th>", ">S(N)</th>", ">rows</th>", ">their tau</th>", ">error of S</th>"})
    EXPECT_EQ(page.find(bare), std::string::npos) << bare;
  const size_t tokens = page.find(">tokens per pass</th>"), th = page.rfind("<th", tokens);
  EXPECT_NE(page.substr(th, tokens - th).find("title=\"How many tokens of text one pass"), std::string::npos);
  EXPECT_NE(page.find("What the words mean"), std::string::npos);
  EXPECT_NE(page.find("<dt>Times plain decoding</dt>"), std::string::npos);
}

// Compared with plain decoding, both ratios are one; compared with a chain, they are two.
TEST(Results, ARatioStandsInItsTableOnce) {
  Sweep sweep = test::measured_sweep();
  const auto headings = [&] {
    const std::vector<Results> all = {results_of(sweep)};
    const std::string page = results_page(all);
    return std::pair(page.find(">\u00d7 plain</th>") != std::string::npos,
                     page.find(">\u00d7 " + sweep.name_of(sweep.baseline) + "</th>") != std::string::npos);
  };
  EXPECT_EQ(headings(), std::pair(true, false));
  sweep.baseline = 1;
  EXPECT_EQ(headings(), std::pair(true, true));
}

TEST(Results, ThreeChartsFillTheirRows) {
  Sweep sweep = with_widths();
  const auto is_tall = [&] {
    const std::vector<Results> all = {results_of(sweep)};
    return results_page(all).find("<div class=\"tall\">") != std::string::npos;
  };
  EXPECT_TRUE(is_tall());
  for (MeasuredRun& run : sweep.runs) run.energy_j = 12.5;
  EXPECT_FALSE(is_tall()) << "a fourth stands below it";
}

TEST(Results, EnergyIsDrawnWhereItWasTold) {
  Sweep sweep = test::measured_sweep();
  for (MeasuredRun& run : sweep.runs) run.energy_j = 12.5;
  const std::vector<Results> all = {results_of(sweep)};
  EXPECT_NE(results_page(all).find("Joules a token"), std::string::npos);
}

TEST(Results, OneWidthGivesNoCurve) {
  const std::vector<Results> all = {results_of(test::measured_sweep())};
  EXPECT_EQ(results_page(all).find("Times plain decoding</h2>"), std::string::npos);
}

TEST(Results, OfTwoMachinesStandBesideEachOther) {
  const std::vector<Results> all = {results_of(test::measured_sweep()), results_of(elsewhere())};
  const std::string page = results_page(all), markdown = results_markdown(all);
  for (const char* words : {"A very good GPU beside A slower GPU", "times theirs"}) {
    EXPECT_NE(page.find(words), std::string::npos) << words;
    EXPECT_NE(markdown.find(words), std::string::npos) << words;
  }
  EXPECT_NE(page.find("id=\"raw1\""), std::string::npos);
}

TEST(Results, MarkdownSaysWhatWasMeasuredWhere) {
  const std::vector<Results> all = {results_of(test::measured_sweep())};
  const std::string markdown = results_markdown(all);
  for (const char* words :
       {"### Sweep on A very good GPU", "No winner here: tree 16 is 3", "| all | tree 16 | 303.00 |",
        "SmolLM2-135M-Instruct.Q4_1.gguf, drafter smollm2-135m-dflash.gguf", "canopy 0.1 at 1a2b3c"})
    EXPECT_NE(markdown.find(words), std::string::npos) << words << "\n" << markdown;
}

TEST(Results, BeforeEveryColumnWroteTheySayHowMuchIsThere) {
  Sweep sweep = test::some_sweep();
  sweep.runs.push_back(test::some_run({0, 0, 0}, 100));
  const std::vector<Results> all = {results_of(sweep)};
  EXPECT_NE(results_page(all).find("1 of 12 replies"), std::string::npos);
  const std::vector<Results> none = {results_of(test::some_sweep())};
  EXPECT_NE(results_markdown(none).find("0 of 12 replies were measured"), std::string::npos);
}

TEST(Results, ForeignNamesStayNames) {
  Sweep sweep = test::measured_sweep();
  sweep.subjects[0].device = "<img src=x onerror=alert(1)>|[a](javascript:1)\xe2\x80\xaetxt";
  sweep.prompts[0].category = "</td></script><b>";
  const std::vector<Results> all = {results_of(sweep), results_of(elsewhere())};
  const std::string page = results_page(all), markdown = results_markdown(all);
  for (const char* words : {"<img", "</script><b>", "\xe2\x80\xae"})
    EXPECT_EQ(page.find(words), std::string::npos) << words;
  EXPECT_EQ(markdown.find("\xe2\x80\xae"), std::string::npos);
  for (size_t at = markdown.find('<'); at != std::string::npos; at = markdown.find('<', at + 1))
    EXPECT_EQ(markdown[at - 1], '\\') << "no tag: " << markdown.substr(at, 20);
  EXPECT_NE(markdown.find("\\[a\\]("), std::string::npos) << markdown;
}

TEST(Results, AreReadFromTheirFileOrItIsNamed) {
  const test::TempFolder folder;
  EXPECT_EQ(read_results(folder.write("good.json", sweep_text(test::measured_sweep()))).sweep.runs.size(), 12u);
  expect_error("bad.json", [&] { read_results(folder.write("bad.json", "{\"format\":\"other\"}")); });
  expect_error("none.json", [] { read_results("none.json"); });
}

// Every way in which a file may be cut off, and single characters that were changed: a page or a refusal.
TEST(Results, DamagedFilesAreReadOrRefusedAndNothingElse) {
  Sweep sweep = test::measured_sweep(1);
  sweep.prompts.resize(1);
  std::erase_if(sweep.runs, [](const MeasuredRun& run) { return run.key.prompt > 0; });
  for (uint32_t i = 0; i < sweep.runs.size(); ++i) sweep.runs[i].place = i;
  const std::string whole = sweep_text(sweep);
  const auto tried = [](const std::string& text) {
    try {
      const std::vector<Results> all = {{parse_sweep(text), text}};
      results_page(all);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input);
    }
  };
  for (size_t length = 0; length < whole.size(); length += 11) tried(whole.substr(0, length));
  for (size_t at = 0; at < whole.size(); at += 7)
    for (const char c : {'\0', '"', '9', '\xff', '-'}) {
      std::string changed = whole;
      changed[at] = c;
      tried(changed);
    }
}

}  // namespace
}  // namespace canopy::app
