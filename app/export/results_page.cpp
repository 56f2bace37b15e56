#include "app/export/results_page.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <vector>

#include "app/export/html.h"
#include "app/export/page_files.h"
#include "app/state/words.h"
#include "app/tree/tree_model.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_summary.h"
#include "engine/bench/sweep_table.h"

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
  const std::string sentence = in_plain_words(verdict_of(sweep).sentence);
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

namespace {

constexpr size_t kMostNameBytes = 512;

std::string name_html(const std::string& name) {
  return html_text(printable(name, kMostNameBytes));
}

/// The columns over all prompts that have written.
std::vector<SweepCell> whole_cells(const Sweep& sweep) {
  std::vector<SweepCell> cells = summarize(sweep, sweep.baseline);
  std::erase_if(cells, [](const SweepCell& cell) { return cell.category != kAllCategories || cell.replies == 0; });
  return cells;
}

using Figure = Spread (*)(const SweepCell& cell);

/// A bar for each column; nothing where none has the figure. digits: after the point of its words.
std::string bars_of(const Sweep& sweep, const std::vector<SweepCell>& cells, Figure figure, int digits,
                    const char* title) {
  std::vector<ChartBar> bars;
  bool any = false;
  for (const SweepCell& cell : cells) {
    const Spread value = figure(cell);
    any = any || value.mean > 0;
    const std::string name = printable(in_plain_words(sweep.name_of(cell.contestant)), kMostNameBytes);
    const std::string words = value.mean > 0 ? fixed(value.mean, digits) : "-";
    bars.push_back({name, value.mean, words, cell.contestant == sweep.baseline ? "rest" : "accent", value.sd,
                    name + ": " + words + (value.sd > 0 ? " \u00b1 " + fixed(value.sd, digits) : "")});
  }
  if (!any) return "";
  return "<div><h2>" + std::string(title) + "</h2>" + level_bars(bars, title) + "</div>\n";
}

/// S(N) of a subject: the speed of its trees over its own plain decoding, by their rows.
ChartLine line_of_trees(const Sweep& sweep, const std::vector<SweepCell>& cells, uint32_t subject) {
  ChartLine line;
  for (const SweepCell& cell : cells) {
    const SweepContestant& column = sweep.contestants[cell.contestant];
    if (column.subject != subject || column.way.mode != DecodeMode::tree || !cell.times_plain.known()) continue;
    line.points.push_back({column.way.budget + 1.0, cell.times_plain.value, cell.times_plain.error,
                           std::to_string(column.way.budget + 1)});
  }
  std::ranges::sort(line.points, {}, &ChartPoint::x);
  return line;
}

std::string subject_words(const Sweep& sweep, uint32_t index) {
  const SweepSubject& subject = sweep.subjects[index];
  const bool other_models =
      std::ranges::any_of(sweep.subjects, [&](const SweepSubject& other) { return other.model != subject.model; });
  return printable(subject.device + (other_models ? ", " + subject.model : ""), kMostNameBytes);
}

/// The lines of all subjects of all files in one chart; nothing where no tree was measured in two widths. beside: bars
/// of the two charts that it stands beside, each below the other; 0: it stands by itself.
std::string widths_chart(std::span<const Results> all, const char* title, size_t beside = 0) {
  std::vector<ChartLine> lines;
  size_t longest = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Sweep& sweep = all[i].sweep;
    const std::vector<SweepCell> cells = whole_cells(sweep);
    for (uint32_t subject = 0; subject < sweep.subjects.size(); ++subject) {
      ChartLine line = line_of_trees(sweep, cells, subject);
      if (line.points.empty()) continue;
      line.label =
          sweep.subjects.size() > 1 ? subject_words(sweep, subject) : printable(results_name(all, i), kMostNameBytes);
      longest = std::max(longest, line.points.size());
      lines.push_back(std::move(line));
    }
  }
  if (longest < 2) return "";
  if (lines.size() == 1) lines.front().label.clear();
  constexpr double heading = 44, hint = 48;  // of the lower one, and its own
  const double height = std::max(kLineChart, 2 * height_of_bars(beside) + heading - hint);
  return std::string(beside > 0 ? "<div class=\"tall\">" : "<div>") + "<h2>" + title + "</h2>" +
         line_chart(lines, title, 1, height) +
         "<p class=\"hint\">By rows of a pass, the root included. The dotted line is plain decoding on the same "
         "device. Whiskers are standard errors.</p></div>\n";
}

bool is_figure(const std::string& cell) {
  return cell == "-" || (!cell.empty() && cell.find_first_not_of("0123456789.,-+") == std::string::npos);
}

constexpr std::string_view kOfRepeats = "The standard deviation over the repeats.",
                           kOfRatio = "The standard error of the ratio before it.";

/// What a column of a table is called on the page, and what explains it: a term (app/state/words.h) or a sentence. The
/// files and the command line keep the short names.
struct Heading {
  std::string_view column, words, about;
};

constexpr Heading kHeadings[] = {
    {"way", "way", "way to decode"},
    {"tok/s", "tok/s", "tok/s"},
    {"S(N)", "\u00d7 plain", "times plain"},
    {"sd", "sd", kOfRepeats},
    {"their sd", "their sd", kOfRepeats},
    {"error", "error", kOfRatio},
    {"their error", "their error", kOfRatio},
    {"error of S", "error", kOfRatio},
    {"error of x", "error", kOfRatio},
    {"error of times", "error", kOfRatio},
    {"tau", "tokens per pass", "tau"},
    {"rows", "width", "width"},
    {"round ms", "pass, ms", "round ms"},
    {"same text", "same text", "same text"},
    {"their tok/s", "their tok/s", "tok/s"},
    {"their S(N)", "their \u00d7 plain", "times plain"},
    {"their tau", "their tokens per pass", "tau"},
    {"times theirs", "times theirs", "times theirs"},
};

std::string heading_html(const std::string& column, const std::string& kind) {
  const auto known = std::ranges::find(kHeadings, column, &Heading::column);
  const bool ratio = column.starts_with("x ");
  std::string words = known == std::end(kHeadings) ? column : std::string(known->words);
  if (ratio) words = "\u00d7 " + in_plain_words(column.substr(2));
  const std::string_view asked = ratio ? "ratio" : known == std::end(kHeadings) ? "" : known->about;
  const Term* term = find_term(asked);
  const std::string_view meaning = term ? term->meaning : asked;
  const std::string about = meaning.empty() ? "" : " title=\"" + html_text(meaning) + "\"";
  return "<th" + kind + about + ">" + name_html(words) + "</th>";
}

/// Headings are explained on hover; this says the same to a reader without a mouse, and on paper.
std::string words_section() {
  std::string out = "<section class=\"wide\"><details><summary>What the words mean</summary><dl class=\"facts\">\n";
  for (const char* name : {"Pass", "Plain decoding", "Chain", "Tree", "Adaptive", "Tokens per pass", "Width",
                           "Time of a pass", "Times plain decoding", "Same text"})
    if (const Term* term = find_term(name))
      out += "<dt>" + html_text(term->name) + "</dt><dd>" + html_text(term->meaning) + "</dd>\n";
  return out + "</dl></details></section>\n";
}

std::string table_html(const TextTable& table) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  const auto kind = [&](size_t column) {
    return std::ranges::all_of(table.rows, [&](const auto& row) { return is_figure(row[column]); }) ? " class=\"n\""
                                                                                                    : "";
  };
  for (size_t i = 0; i < table.columns.size(); ++i) out += heading_html(table.columns[i], kind(i));
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    // The rows over all prompts are what counts.
    out += table.columns.front() == "category" && row.front() == kAllCategories ? "<tr class=\"whole\">" : "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string words = table.columns[i] == "way" ? in_plain_words(row[i]) : row[i];
      out += std::string("<td") + kind(i) + ">" + name_html(words) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

/// Where the baseline is plain decoding, its ratio and that to plain decoding are the same column twice.
TextTable without_repetition(TextTable table) {
  const auto plain = std::ranges::find(table.columns, "S(N)");
  const auto ratio =
      std::ranges::find_if(table.columns, [](const std::string& name) { return name.starts_with("x "); });
  if (plain == table.columns.end() || ratio == table.columns.end()) return table;
  const auto from = ratio - table.columns.begin(), kept = plain - table.columns.begin();
  const bool repeats = std::ranges::all_of(
      table.rows, [&](const auto& row) { return row[from] == row[kept] && row[from + 1] == row[kept + 1]; });
  if (!repeats) return table;
  const auto take = [from](std::vector<std::string>& cells) {
    cells.erase(cells.begin() + from, cells.begin() + from + 2);
  };
  take(table.columns);
  std::ranges::for_each(table.rows, take);
  return table;
}

std::string fact(const char* name, const std::string& value) {
  return value.empty() ? "" : "<dt>" + html_text(name) + "</dt><dd>" + name_html(value) + "</dd>\n";
}

std::string machine_facts(const SweepSubject& s) {
  std::string out;
  out += fact(s.is_server() ? "Server" : "Device", s.device + (s.is_software ? " (software)" : ""));
  out += fact("Driver", s.driver);
  out += fact("Kernels", s.kernels.substr(0, s.kernels.find(';')));
  out += fact("Model", s.model + (s.quantization.empty() ? "" : ", " + s.quantization));
  out += fact("Drafter", s.drafter);
  out += fact("Keys and values", s.kv);
  out += fact("Context", s.context > 0 ? grouped(s.context) + " positions" : "");
  out += fact("Self-test", s.self_test);
  return out + fact("Energy told by", s.energy);
}

std::string moment_words(const std::string& created) {
  const std::optional<int64_t> moment = moment_in(created);
  return moment ? local_time_and_zone(*moment) : created;
}

std::string protocol_facts(const Sweep& sweep) {
  const SweepSettings& settings = sweep.settings;
  std::map<std::string, size_t> categories;
  for (const SweepPrompt& prompt : sweep.prompts) ++categories[prompt.category];
  std::string prompts = counted(sweep.prompts.size(), "prompt", "prompts");
  std::string parts;
  for (const auto& [name, count] : categories) parts += (parts.empty() ? "" : ", ") + name + " " + grouped(count);
  if (categories.size() > 1) prompts += " (" + parts + ")";
  std::string out = fact("Prompts", prompts) + fact("Repeats", grouped(settings.repeats));
  out += fact("Tokens of a reply", "at most " + grouped(settings.max_tokens));
  out += fact("Temperature", settings.sampling.is_plain_greedy() ? "0: the likeliest token"
                                                                 : fixed(double{settings.sampling.temperature}, 2));
  out += fact("Costs of mode adaptive", std::string(to_string(settings.policy)));
  if (!sweep.complete())
    out += fact("Measured so far", grouped(sweep.runs.size()) + " of " + grouped(sweep.counts().total()) + " replies");
  out += fact("Cores of the host", sweep.cores > 0 ? grouped(sweep.cores) : "");
  out += fact("Canopy", sweep.version + (sweep.commit.empty() ? "" : " at " + sweep.commit));
  return out + fact("Measured", moment_words(sweep.created));
}

std::string measured_section(std::span<const Results> all, size_t index) {
  const Sweep& sweep = all[index].sweep;
  const std::vector<SweepCell> cells = whole_cells(sweep);
  std::string out = "<section class=\"wide\"><h2>" + name_html(results_name(all, index)) +
                    "</h2>\n<p class=\"verdict\">" + name_html(verdict_words(sweep)) + "</p>\n<div class=\"stats\">";
  out += bars_of(
      sweep, cells, [](const SweepCell& cell) { return cell.tokens_per_second; }, 1, "Tokens a second");
  const std::string energy = bars_of(
      sweep, cells, [](const SweepCell& cell) { return cell.joules_per_token; }, 2, "Joules a token");
  // Of three charts in two columns it takes the height of the two others.
  if (all.size() == 1) out += widths_chart(all, "Times plain decoding", energy.empty() ? cells.size() : 0);
  out += bars_of(
      sweep, cells,
      [](const SweepCell& cell) {
        return Spread{cell.tau, 0, 0};
      },
      2, "Tokens a pass");
  out += energy;
  out += "</div>\n" + table_html(without_repetition(summary_table(sweep, sweep.baseline)));
  for (const std::string& remark : remarks(sweep))
    out += "<p class=\"hint\">" + name_html(in_plain_words(remark)) + "</p>\n";
  for (const SweepSubject& subject : sweep.subjects) out += "<dl class=\"facts\">" + machine_facts(subject) + "</dl>\n";
  return out + "<dl class=\"facts\">" + protocol_facts(sweep) + "</dl></section>\n";
}

std::string beside_section(std::span<const Results> all, size_t index) {
  std::string out = "<section class=\"wide\"><h2>" + name_html(results_name(all, 0)) + " beside " +
                    name_html(results_name(all, index)) + "</h2>\n" +
                    table_html(overlay_table(all[0].sweep, all[index].sweep).table);
  for (const std::string& note : overlay(all[0].sweep, all[index].sweep).notes)
    out += "<p class=\"hint\">" + name_html(note) + "</p>\n";
  return out + "</section>\n";
}

/// Folded away, with a button that copies it.
std::string copied(const std::string& summary, const std::string& id, const std::string& text) {
  return "<section class=\"wide\"><details><summary>" + html_text(summary) + "</summary><p><button data-copies=\"" +
         id + "\" hidden>Copy</button></p><pre class=\"raw\" id=\"" + id + "\">" + html_text(text) +
         "</pre></details></section>\n";
}

}  // namespace

std::string results_page(std::span<const Results> all) {
  const std::string title =
      all.size() > 1 ? std::to_string(all.size()) + " measurements beside each other"
                     : kind_words(all.front().sweep) + " on " + printable(results_name(all, 0), kMostNameBytes);
  HtmlPage page;
  page.title = "Canopy: " + title;
  page.style = page_style();
  page.script = report_script();
  std::string& body = page.body;
  body = "<header><h1>Canopy</h1><p>" + html_text(title) + "</p><span class=\"badge\">measured</span></header>\n";
  body += "<main>\n<div class=\"stats\">\n";
  if (all.size() > 1)
    if (const std::string chart = widths_chart(all, "Times plain decoding"); !chart.empty())
      body += "<section class=\"wide\"><div class=\"stats\">" + chart + "</div></section>\n";
  for (size_t i = 1; i < all.size(); ++i) body += beside_section(all, i);
  for (size_t i = 0; i < all.size(); ++i) body += measured_section(all, i);
  body += words_section();
  body += copied("The tables as Markdown", "markdown", results_markdown(all));
  for (size_t i = 0; i < all.size(); ++i)
    body += copied("The raw file" + (all.size() > 1 ? ": " + printable(results_name(all, i), kMostNameBytes) : ""),
                   "raw" + std::to_string(i), printable(all[i].raw, all[i].raw.size() * 8 + 8, LineBreaks::keep));
  body +=
      "</div>\n</main>\n<footer><p>Made by Canopy from the raw files above. \u00b1 is a standard deviation over "
      "the repeats for speeds, and a standard error for ratios. The page needs no network.</p></footer>\n";
  return html_of(page);
}

}  // namespace canopy::app
