#include "app/share/results.h"

#include <string_view>

#include "app/base/figures.h"
#include "app/layout/tree_caption.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/base/text_encoding.h"
#include "engine/base/text_table.h"
#include "engine/comparison/sweep_file.h"
#include "engine/comparison/sweep_overlay.h"
#include "engine/comparison/sweep_summary.h"
#include "engine/comparison/sweep_table.h"
#include "engine/comparison/verdict.h"

namespace canopy::app {
namespace {

/// Foreign text so that Markdown has no link, picture or HTML in it. A bar is escaped only outside of tables:
/// as_markdown() escapes those of cells.
std::string markdown_text(const std::string& words, std::string_view escaped = "\\`*[]<>|") {
  std::string out;
  for (const char c : printable(words, 4096)) {
    if (escaped.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_table(TextTable table) {
  for (std::string& column : table.columns) column = markdown_text(column, "\\`*[]<>");
  for (auto& row : table.rows)
    for (std::string& cell : row) cell = markdown_text(cell, "\\`*[]<>");
  return as_markdown(table);
}

}  // namespace

Results read_results(const std::filesystem::path& path) {
  Results results;
  results.raw = read_text_input(path, kMostSweepBytes);
  results.sweep = with_context(shown(path), [&] { return parse_sweep(results.raw); });
  return results;
}

std::string kind_words(const Sweep& sweep) {
  return sweep.kind == SweepKind::comparison ? "Comparison" : "Sweep";
}

std::string results_name(std::span<const Results> all, size_t index) {
  const Sweep& beside = all[index == 0 && all.size() > 1 ? 1 : 0].sweep;
  return overlay_name(all[index].sweep, beside);
}

std::string verdict_words(const Sweep& sweep) {
  const std::string sentence = verdict_of(sweep).sentence;
  if (sentence.starts_with("ar ")) return "AR" + sentence.substr(2) + ".";
  if (!sentence.empty()) return capitalised(sentence) + ".";
  return grouped(sweep.runs.size()) + " of " + grouped(sweep.counts().total()) +
         " replies were measured: not every column has written yet.";
}

std::string results_markdown(std::span<const Results> all) {
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    const Sweep& sweep = all[i].sweep;
    out += "### " + kind_words(sweep) + " on " + markdown_text(results_name(all, i)) + "\n\n" +
           markdown_text(verdict_words(sweep)) + "\n\n" + markdown_table(summary_table(sweep, sweep.baseline)) + "\n";
    for (const std::string& remark : remarks(sweep)) out += markdown_text(remark) + "\n\n";
    out += markdown_text(sweep_headline(sweep)) + "\n\n";
  }
  for (size_t i = 1; i < all.size(); ++i) {
    out += "### " + markdown_text(results_name(all, 0)) + " beside " + markdown_text(results_name(all, i)) + "\n\n" +
           markdown_table(overlay_table(all[0].sweep, all[i].sweep).table) + "\n";
    for (const std::string& note : overlay(all[0].sweep, all[i].sweep).notes) out += markdown_text(note) + "\n\n";
  }
  return out;
}

}  // namespace canopy::app
