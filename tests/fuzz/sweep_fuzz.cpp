// Files of sweeps and their journals: what is accepted is written as it was read, has figures that can be shown, and
// can be laid beside itself.

#include <nlohmann/json.hpp>
#include <string>

#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_journal.h"
#include "engine/bench/sweep_summary.h"
#include "engine/bench/sweep_table.h"
#include "tests/fuzz/harness.h"

namespace canopy::fuzz {
namespace {

void check_figures(const Sweep& sweep) {
  uint64_t replies = 0;
  for (const SweepCell& cell : summarize(sweep, sweep.baseline)) {
    if (cell.category == kAllCategories) replies += cell.replies;
    require(cell.different <= cell.replies, "no more texts differ than there are");
    require(cell.tokens_per_second.sd >= 0, "a spread is not negative");
  }
  require(replies <= sweep.runs.size(), "no run counts twice");
  for (const std::string& sentence : remarks(sweep)) touch(sentence);
  touch(verdict_of(sweep).sentence);
  touch(sweep_headline(sweep));
}

void check_tables(const Sweep& sweep) {
  for (const TextTable& table :
       {summary_table(sweep, sweep.baseline), runs_table(sweep), overlay_table(sweep, sweep).table}) {
    for (const auto& row : table.rows) require(row.size() == table.columns.size(), "rows have the table's columns");
    touch(as_csv(table));
    touch(as_markdown(table));
  }
  require(runs_table(sweep).rows.size() == sweep.runs.size(), "every run is a row");
}

}  // namespace

void run(std::string_view input) {
  accepted([&] {
    const Sweep sweep = parse_sweep(input);
    validate(sweep);
    const std::string text = sweep_text(sweep);
    require(nlohmann::json::accept(text), "a sweep is written as JSON");
    require(sweep_text(parse_sweep(text)) == text, "a sweep is read back as it was written");
    require(plan_difference(sweep, parse_sweep(text)).empty(), "a sweep goes on with itself");
    check_figures(sweep);
    check_tables(sweep);
  });
}

}  // namespace canopy::fuzz
